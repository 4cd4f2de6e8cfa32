// file   := magic:8 bytes  version:U32  0:U32  record*
// record := header, as in QueueRecord; body
//
// Numbers are little-endian, checksums CRC-32.
#include "remote/queue_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "files/checksum.h"
#include "trusted_file.h"

namespace persia::agent {
namespace {

constexpr std::string_view kFileHeader("PRSMRWQ\n\1\0\0\0\0\0\0\0", QueueFile::kFileHeaderBytes);
constexpr std::string_view kMarker = "RWR1";
constexpr size_t kScanBytes = 64 * 1024;

std::string_view HeaderOf(const QueueRecord& record) {
  return {reinterpret_cast<const char*>(&record), QueueRecord::kHeaderBytes};
}

uint32_t HeaderChecksum(const QueueRecord& record) {
  constexpr size_t kFrom = offsetof(QueueRecord, body_size);
  return Checksum(HeaderOf(record).substr(kFrom, offsetof(QueueRecord, done) - kFrom));
}

// How many bytes were read: fewer than `size` only at the end of the file. Nothing: the system failed, and errno says why.
std::optional<size_t> ReadAt(int fd, uint64_t at, void* to, size_t size) {
  size_t have = 0;
  while (have < size) {
    const ssize_t n = pread(fd, static_cast<char*>(to) + have, size - have, static_cast<off_t>(at + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  return have;
}

bool WriteAt(int fd, uint64_t at, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<uint64_t>(n);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

Result<std::shared_ptr<QueueFile>> QueueFile::Create(const Place& place, mode_t mode) {
  unlinkat(place.directory_fd, place.name.c_str(), 0);
  OwnedFd fd(openat(place.directory_fd, place.name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (fd.get() < 0) return SystemError("cannot create " + place.path());
  if (fchmod(fd.get(), mode) != 0 || !WriteAt(fd.get(), 0, kFileHeader)) {
    const Error error = SystemError("cannot write " + place.path());
    unlinkat(place.directory_fd, place.name.c_str(), 0);
    return error;
  }
  return std::shared_ptr<QueueFile>(new QueueFile(std::move(fd), place.path(), true, false, kFileHeaderBytes));
}

Result<std::shared_ptr<QueueFile>> QueueFile::Open(const Place& place, Found& found) {
  std::string distrust;
  const metrics::FileTrust trust = metrics::TrustIn(place.directory_fd);
  OwnedFd fd(metrics::OpenTrustedFile(place.directory_fd, place.name, O_RDWR, trust, distrust));
  struct stat info {};
  found = Found::kNo;
  if (!distrust.empty()) return Error{place.path() + " " + distrust};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) {
    const bool no_file = errno == ENOENT || errno == EISDIR || errno == ENXIO;  // gone; or a directory, a socket
    found = no_file ? Found::kNo : Found::kTryLater;
    return SystemError("cannot read " + place.path());
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > kMaxFileBytes) return Error{place.path() + " has " + std::to_string(size) + " bytes, more than a queue writes"};
  char header[kFileHeaderBytes] = {};
  const auto have = ReadAt(fd.get(), 0, header, sizeof header);
  found = have ? Found::kYes : Found::kTryLater;
  if (!have) return SystemError("cannot read " + place.path());
  const std::string_view begin(header, *have);
  const bool is_zero = *have > 0 && begin.find_first_not_of('\0') == std::string_view::npos;
  const bool has_header = is_zero || begin == kFileHeader.substr(0, *have);
  return std::shared_ptr<QueueFile>(
      new QueueFile(std::move(fd), place.path(), has_header, is_zero, std::max(size, kFileHeaderBytes)));
}

Status QueueFile::Append(QueueRecord& record, std::string_view body) {
  record.at = size_;
  record.body_size = static_cast<uint32_t>(body.size());
  record.body_checksum = Checksum(body);
  record.checksum = HeaderChecksum(record);
  if (!WriteAt(fd_.get(), size_, HeaderOf(record)) || !WriteAt(fd_.get(), size_ + QueueRecord::kHeaderBytes, body)) {
    const Error error = SystemError("cannot write " + path_);
    // If that fails too, readers find no whole record there. With _FORTIFY_SOURCE, GCC accepts no cast to void.
    [[maybe_unused]] const int truncated = ftruncate(fd_.get(), static_cast<off_t>(size_));
    return error;
  }
  size_ = record.end();
  return Done{};
}

QueueFile::Found QueueFile::ReadHeader(uint64_t at, uint64_t end, QueueRecord& record) const {
  if (at + QueueRecord::kHeaderBytes > end) return Found::kNo;
  const auto have = ReadAt(fd_.get(), at, &record, QueueRecord::kHeaderBytes);
  if (!have) return Found::kTryLater;
  if (*have != QueueRecord::kHeaderBytes || !HeaderOf(record).starts_with(kMarker) || record.checksum != HeaderChecksum(record))
    return Found::kNo;
  record.at = at;
  return record.body_size <= kMaxBodyBytes && record.end() <= end ? Found::kYes : Found::kNo;
}

QueueFile::Found QueueFile::Next(uint64_t from, uint64_t end, QueueRecord& record, uint64_t& skipped) const {
  skipped = 0;
  if (const Found found = ReadHeader(from, end, record); found != Found::kNo) return found;
  // Searches for the next marker with a whole header.
  std::string bytes;
  for (uint64_t at = from + 1; at + QueueRecord::kHeaderBytes <= end;) {
    bytes.resize(std::min<uint64_t>(kScanBytes, end - at));
    const auto have = ReadAt(fd_.get(), at, bytes.data(), bytes.size());
    if (!have) return Found::kTryLater;
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

Result<std::string> QueueFile::Body(const QueueRecord& record, Found& found) const {
  std::string body(record.body_size, '\0');
  const auto have = ReadAt(fd_.get(), record.at + QueueRecord::kHeaderBytes, body.data(), body.size());
  found = have ? Found::kNo : Found::kTryLater;
  if (!have) return SystemError("cannot read " + path_);
  if (*have != body.size() || Checksum(body) != record.body_checksum)
    return Error{path_ + ": the record at " + std::to_string(record.at) + " does not match its checksum"};
  found = Found::kYes;
  return body;
}

void QueueFile::MarkDone(const QueueRecord& record) const {
  // If that fails, the record is sent again after a restart.
  static_cast<void>(WriteAt(fd_.get(), record.at + offsetof(QueueRecord, done), "\1"));
}

void QueueFile::Sync() const { fdatasync(fd_.get()); }

bool QueueFile::HasDamagedHeaderAt(uint64_t at) const {
  QueueRecord record;
  return at + QueueRecord::kHeaderBytes <= size_ && ReadHeader(at, UINT64_MAX, record) == Found::kNo;
}

void QueueFile::CutAt(uint64_t end) {
  if (ftruncate(fd_.get(), static_cast<off_t>(end)) == 0) size_ = end;
}

}  // namespace persia::agent
