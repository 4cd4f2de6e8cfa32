// segment     := magic:8 bytes  version:U32  0:U32  record*
// record      := header body
// header      := "RWR1"  checksum:U32  body_size:U32  body_checksum:U32
//                generation:U32  shard:U32  samples:U32  0:U32  timestamp_ms:U64      (the checksum is of these two lines from
//                                                                                      body_size on)
//                done:U8  0:7 bytes
//
// Numbers are little-endian, checksums CRC-32. `done` is 0 or 1 and may be written at any time: no checksum covers it.
#include "remote/queue_segment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "state/bytes.h"
#include "state/checksum.h"

namespace persia::agent {
namespace {

constexpr char kMagic[] = "PRSMRWQ\n";
constexpr uint32_t kVersion = 1;
constexpr std::string_view kMarker = "RWR1";
constexpr size_t kCheckedFrom = 8;
constexpr size_t kCheckedBytes = 32;
constexpr size_t kDoneAt = kCheckedFrom + kCheckedBytes;
constexpr size_t kScanBytes = 64 * 1024;

Error Because(const std::string& what) { return Error{what + ": " + std::strerror(errno)}; }

std::string FileHeader() {
  ByteWriter writer;
  for (size_t i = 0; i < 8; ++i) writer.U8(static_cast<uint8_t>(kMagic[i]));
  writer.U32(kVersion);
  writer.U32(0);
  return std::move(writer).Take();
}

// How many bytes came: fewer than `size` only at the file's end. Nothing: the system failed, and errno says why.
std::optional<size_t> ReadAt(int fd, uint64_t at, char* to, size_t size) {
  size_t have = 0;
  while (have < size) {
    const ssize_t n = pread(fd, to + have, size - have, static_cast<off_t>(at + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  return have;
}

bool WriteAt(int fd, uint64_t at, std::string_view first, std::string_view second) {
  while (!first.empty() || !second.empty()) {
    // Not written to; the interface is older than const.
    iovec parts[] = {{const_cast<char*>(first.data()), first.size()}, {const_cast<char*>(second.data()), second.size()}};
    const ssize_t n = pwritev(fd, parts, 2, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<uint64_t>(n);
    const size_t of_first = std::min(static_cast<size_t>(n), first.size());
    first.remove_prefix(of_first);
    second.remove_prefix(static_cast<size_t>(n) - of_first);
  }
  return true;
}

std::string Header(const QueueRecord& record) {
  ByteWriter checked;
  checked.U32(record.body_size);
  checked.U32(record.body_checksum);
  checked.U32(record.generation);
  checked.U32(record.shard);
  checked.U32(record.samples);
  checked.U32(0);
  checked.U64(static_cast<uint64_t>(record.timestamp_ms));
  const std::string bytes = std::move(checked).Take();
  ByteWriter sum;
  sum.U32(Checksum(bytes));
  sum.U32(0);
  std::string header(kMarker);
  header += std::move(sum).Take().substr(0, sizeof(uint32_t)) + bytes;
  header += record.done ? '\1' : '\0';
  header.resize(QueueSegment::kRecordHeaderBytes, '\0');
  return header;
}

}  // namespace

uint64_t QueueRecord::end() const { return at + QueueSegment::kRecordHeaderBytes + body_size; }

Result<std::shared_ptr<QueueSegment>> QueueSegment::Create(const Place& place, mode_t mode) {
  unlinkat(place.directory_fd, place.name.c_str(), 0);
  const int fd = openat(place.directory_fd, place.name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return Because("cannot make " + place.path());
  if (fchmod(fd, mode) != 0 || !WriteAt(fd, 0, FileHeader(), "")) {
    const Error error = Because("cannot write " + place.path());
    unlinkat(place.directory_fd, place.name.c_str(), 0);
    close(fd);
    return error;
  }
  return std::shared_ptr<QueueSegment>(new QueueSegment(fd, place.path(), kFileHeaderBytes));
}

Result<std::shared_ptr<QueueSegment>> QueueSegment::Open(const Place& place, Found& found, Beginning wanted) {
  const int fd = openat(place.directory_fd, place.name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) {
    // Gone; or a link, a directory, a socket: so is no file of a queue.
    const bool no_file = errno == ENOENT || errno == ELOOP || errno == EISDIR || errno == ENXIO;
    found = no_file ? Found::kNo : Found::kNotNow;
    const Error error = Because("cannot read " + place.path());
    if (fd >= 0) close(fd);
    return error;
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  std::shared_ptr<QueueSegment> segment(new QueueSegment(fd, place.path(), std::max(size, kFileHeaderBytes)));
  found = Found::kNo;
  if (!S_ISREG(info.st_mode)) return Error{place.path() + " is not a regular file"};
  if (size > kMostFileBytes) return Error{place.path() + " has " + std::to_string(size) + " bytes, more than a queue writes"};
  char header[kFileHeaderBytes] = {};
  const auto have = ReadAt(fd, 0, header, sizeof header);
  if (!have) {
    found = Found::kNotNow;
    return Because("cannot read " + place.path());
  }
  const std::string expected = FileHeader();
  // Whoever wrote may have been killed before the header was whole: then there is nothing in it.
  if (wanted == Beginning::kOurs && std::string_view(header, *have) != std::string_view(expected).substr(0, *have)) {
    return Error{place.path() + " does not begin as a queue of this version does"};
  }
  found = Found::kYes;
  return segment;
}

QueueSegment::~QueueSegment() { close(fd_); }

Status QueueSegment::Append(QueueRecord& record, std::string_view body) {
  if (body.size() > kMostBodyBytes)
    return Error{path_ + ": " + std::to_string(body.size()) + " bytes are too many for a record"};
  record.at = size_;
  record.body_size = static_cast<uint32_t>(body.size());
  record.body_checksum = Checksum(body);
  if (!WriteAt(fd_, size_, Header(record), body)) {
    const Error error = Because("cannot write " + path_);
    static_cast<void>(
        ftruncate(fd_, static_cast<off_t>(size_)));  // else what is there is no whole record, and found to be none
    return error;
  }
  size_ = record.end();
  return Done{};
}

QueueSegment::Found QueueSegment::ReadHeader(uint64_t at, uint64_t end, QueueRecord& record) const {
  char bytes[kRecordHeaderBytes];
  if (at + sizeof bytes > end) return Found::kNo;
  const auto have = ReadAt(fd_, at, bytes, sizeof bytes);
  if (!have) return Found::kNotNow;
  if (*have != sizeof bytes || std::string_view(bytes, kMarker.size()) != kMarker) return Found::kNo;
  const std::string_view header(bytes, sizeof bytes);
  ByteReader reader(header.substr(kMarker.size()));
  if (reader.U32() != Checksum(header.substr(kCheckedFrom, kCheckedBytes))) return Found::kNo;
  record.at = at;
  record.body_size = reader.U32();
  record.body_checksum = reader.U32();
  record.generation = reader.U32();
  record.shard = reader.U32();
  record.samples = reader.U32();
  reader.U32();
  record.timestamp_ms = static_cast<int64_t>(reader.U64());
  record.done = reader.U8() != 0;
  return record.body_size <= kMostBodyBytes && record.end() <= end ? Found::kYes : Found::kNo;
}

QueueSegment::Found QueueSegment::Next(uint64_t from, uint64_t end, QueueRecord& record, uint64_t& skipped) const {
  skipped = 0;
  if (const Found found = ReadHeader(from, end, record); found != Found::kNo) return found;
  // Byte by byte for the next marker whose header is whole.
  std::string bytes;
  for (uint64_t at = from + 1; at + kRecordHeaderBytes <= end;) {
    bytes.resize(std::min<uint64_t>(kScanBytes, end - at));
    const auto have = ReadAt(fd_, at, bytes.data(), bytes.size());
    if (!have) return Found::kNotNow;
    bytes.resize(*have);
    for (size_t marker = bytes.find(kMarker); marker != std::string::npos; marker = bytes.find(kMarker, marker + 1)) {
      const Found found = ReadHeader(at + marker, end, record);
      if (found == Found::kNo) continue;
      skipped = at + marker - from;
      return found;
    }
    if (bytes.size() < kMarker.size()) break;
    at += bytes.size() - kMarker.size() + 1;
  }
  return Found::kNo;
}

Result<std::string> QueueSegment::Body(const QueueRecord& record, Found& found) const {
  std::string body(record.body_size, '\0');
  const auto have = ReadAt(fd_, record.at + kRecordHeaderBytes, body.data(), body.size());
  found = have ? Found::kNo : Found::kNotNow;
  if (!have) return Because("cannot read " + path_);
  if (*have != body.size()) {
    return Error{path_ + ": the record at " + std::to_string(record.at) + " cannot be read"};
  }
  if (Checksum(body) != record.body_checksum) {
    return Error{path_ + ": the record at " + std::to_string(record.at) + " does not match its checksum"};
  }
  found = Found::kYes;
  return body;
}

void QueueSegment::MarkDone(const QueueRecord& record) const {
  static_cast<void>(WriteAt(fd_, record.at + kDoneAt, "\1", ""));  // else it is sent twice after a restart
}

bool QueueSegment::HasDamagedHeaderAt(uint64_t at) const {
  QueueRecord record;
  return at + kRecordHeaderBytes <= size_ && ReadHeader(at, UINT64_MAX, record) == Found::kNo;
}

void QueueSegment::CutAt(uint64_t end) {
  if (ftruncate(fd_, static_cast<off_t>(end)) == 0) size_ = end;
}

}  // namespace persia::agent
