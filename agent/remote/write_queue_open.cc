// How a queue begins: what an agent before this one has left. A queue is a directory of files `<number>.queue`, in the order of
// their numbers; queue_segment.cc has their grammar.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "remote/write_queue.h"

namespace persia::agent {
namespace {

constexpr std::string_view kSuffix = ".queue";
constexpr uint64_t kMostNumber = 1'000'000'000'000;

std::string NameOf(uint64_t number) {
  std::string digits = std::to_string(number);
  if (digits.size() < 12) digits.insert(0, 12 - digits.size(), '0');
  return digits + std::string(kSuffix);
}

// Of a name that this number gives, and no other.
std::optional<uint64_t> NumberOf(std::string_view name) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || number == 0 || number > kMostNumber || NameOf(number) != name) return std::nullopt;
  return number;
}

int64_t SystemNow() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Result<std::unique_ptr<WriteQueue>> WriteQueue::Open(Options options) {
  if (!options.now_ms) options.now_ms = SystemNow;
  std::unique_ptr<WriteQueue> queue(new WriteQueue(std::move(options)));
  if (Status status = queue->OpenDirectory(); !status.ok()) return Error{status.error()};
  if (Status status = queue->ReadDirectory(); !status.ok()) return Error{status.error()};
  return queue;
}

Status WriteQueue::OpenDirectory() {
  const std::string path = options_.directory + "/" + options_.name;
  // Whoever may write the files may also make some.
  const mode_t mode = options_.mode | (options_.mode >> 2 & 0111);
  if (mkdirat(options_.directory_fd, options_.name.c_str(), mode) != 0 && errno != EEXIST) {
    return Error{"cannot make " + path + ": " + std::strerror(errno)};
  }
  const int fd = openat(options_.directory_fd, options_.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return Error{"cannot open " + path + ": " + std::strerror(errno)};
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
  return Done{};
}

// A list with gaps would be worse than none: a new file replaces what has its name.
Status WriteQueue::ReadDirectory() {
  std::vector<uint64_t> numbers;
  DIR* const directory = fdopendir(openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  errno = directory == nullptr ? errno : 0;
  while (const dirent* entry = directory == nullptr ? nullptr : readdir(directory)) {
    if (const auto number = NumberOf(entry->d_name)) {
      numbers.push_back(*number);
    } else if (std::string_view(entry->d_name).ends_with(kSuffix)) {
      options_.log.warn("remote.queue", options_.directory + "/" + options_.name + "/" + entry->d_name +
                                            " is not a name that a queue gives; it is left alone");
    }
    errno = 0;  // which is not the log's
  }
  const int error = errno;
  if (directory != nullptr) closedir(directory);
  if (error != 0) return Error{"cannot list " + options_.directory + "/" + options_.name + ": " + std::strerror(error)};
  std::sort(numbers.begin(), numbers.end());
  for (const uint64_t number : numbers) {
    next_number_ = number + 1;
    Segment segment{.number = number};
    std::string why;
    const QueueSegment::Found found = Scan(segment, why);
    if (found == QueueSegment::Found::kNotNow) ReadLater(segment);
    if (found != QueueSegment::Found::kNo) segments_.push_back(std::move(segment));
  }
  RemoveDone();
  return Done{};
}

// Takes down what is pending in a file that an agent before this one has left. kNo: nothing, and it has the name no longer.
// kNotNow: `why`, and nothing is known of it.
QueueSegment::Found WriteQueue::Scan(Segment& segment, std::string& why) {
  const QueueSegment::Place place = PlaceOf(segment.number);
  QueueSegment::Found found{};
  auto opened = QueueSegment::Open(place, found);
  if (!opened.ok()) {
    why = opened.error();
    if (found == QueueSegment::Found::kNotNow) return found;
    const uint64_t samples = SamplesWithoutHeader(segment.number);
    const std::string aside = place.name + ".broken";
    const bool moved = renameat(fd_, place.name.c_str(), fd_, aside.c_str()) == 0;
    ++corrupt_places_;
    Count("corrupt", samples);
    options_.log.warn("remote.queue", why +
                                          (samples > 0 ? ", and " + std::to_string(samples) + " samples in it are lost" : "") +
                                          (moved ? "; it is kept as " + aside : "") + ", and the rest goes on");
    return found;
  }
  QueueSegment& file = *opened.value();
  Segment read{.number = segment.number};
  uint64_t at = QueueSegment::kFileHeaderBytes;
  QueueRecord record;
  uint64_t skipped = 0;
  bool any = false;
  const int64_t most_ms = options_.now_ms() + kMostAheadMs;
  while ((found = file.Next(at, file.size(), record, skipped)) == QueueSegment::Found::kYes) {
    any = true;
    at = record.end();
    generation_ = std::max(generation_, record.generation);
    if (record.timestamp_ms <= most_ms) NoteTimestamp(record.timestamp_ms);
    read.newest_ms = std::max(read.newest_ms, record.timestamp_ms);
    if (record.done) continue;
    ++read.pending_records;
    read.pending_samples += record.samples;
    read.pending_bytes += record.body_size;
  }
  if (found == QueueSegment::Found::kNotNow) {
    why = "cannot read " + place.path() + ": " + std::strerror(errno);
    return found;
  }
  if (at < file.size()) {
    if (file.HasDamagedHeaderAt(at)) CountCorrupt(place.path() + ": its last record is damaged");
    file.CutAt(at);
  }
  if (!any) {
    unlinkat(fd_, place.name.c_str(), 0);
    return QueueSegment::Found::kNo;
  }
  read.bytes = file.size();
  segment = std::move(read);
  return QueueSegment::Found::kYes;
}

// The bounds hold for it meanwhile: its size and its age are known without reading. Its generations are not, so those that
// begin now have numbers that none can have had, the seconds since 1970: else a series that changed shards could be overtaken.
void WriteQueue::ReadLater(Segment& segment) {
  segment.unread = true;
  const int64_t now_ms = options_.now_ms();
  segment.newest_ms = now_ms;
  struct stat info {};
  if (fstatat(fd_, PlaceOf(segment.number).name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    segment.newest_ms = info.st_mtim.tv_sec * 1000;
    segment.bytes = std::min(static_cast<uint64_t>(info.st_size), QueueSegment::kMostFileBytes);
  }
  generation_ = std::max(generation_, static_cast<uint32_t>(now_ms / 1000));
}

// Of a file whose header is damaged: its records have checksums of their own.
uint64_t WriteQueue::SamplesWithoutHeader(uint64_t number) const {
  QueueSegment::Found found{};
  const auto opened = QueueSegment::Open(PlaceOf(number), found, QueueSegment::Beginning::kAny);
  if (!opened.ok()) return 0;
  const QueueSegment& file = *opened.value();
  uint64_t samples = 0;
  uint64_t skipped = 0;
  QueueRecord record{};
  for (uint64_t at = QueueSegment::kFileHeaderBytes; file.Next(at, file.size(), record, skipped) == QueueSegment::Found::kYes;
       at = record.end()) {
    if (!record.done) samples += record.samples;
  }
  return samples;
}

QueueSegment::Place WriteQueue::PlaceOf(uint64_t number) const {
  return {.directory_fd = fd_, .directory = options_.directory + "/" + options_.name, .name = NameOf(number)};
}

}  // namespace persia::agent
