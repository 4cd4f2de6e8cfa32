// A queue is a directory of files `<number>.queue`, in the order of their numbers; queue_segment.cc has their grammar.
#include "remote/write_queue.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

constexpr std::string_view kSuffix = ".queue";
constexpr uint64_t kLeastSegmentBytes = 64 * 1024;
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

WriteQueue::WriteQueue(Options options)
    : options_(std::move(options)),
      segment_bytes_(std::clamp(options_.max_bytes / 16, kLeastSegmentBytes, QueueSegment::kMostSegmentBytes)) {}

WriteQueue::~WriteQueue() {
  if (fd_ >= 0) close(fd_);
}

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
    Scan(number);
  }
  RemoveDone();
  return Done{};
}

// Takes down what is pending in a file that an agent before this one has left.
void WriteQueue::Scan(uint64_t number) {
  const auto leave = [this](const std::string& why) {
    options_.log.warn("remote.queue", why + "; it is left as it is for an agent later on, and the rest goes on");
  };
  QueueSegment::Found found{};
  auto opened = QueueSegment::Open(PlaceOf(number), found);
  if (!opened.ok() && found == QueueSegment::Found::kNotNow) return leave(opened.error());
  if (!opened.ok()) {
    const QueueSegment::Place place = PlaceOf(number);
    const std::string aside = place.name + ".broken";
    const bool moved = renameat(fd_, place.name.c_str(), fd_, aside.c_str()) == 0;
    ++corrupt_places_;
    options_.log.warn("remote.queue", opened.error() + (moved ? "; it is kept as " + aside : "") + ", and the rest goes on");
    return;
  }
  QueueSegment& file = *opened.value();
  Segment segment{.number = number};
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
    segment.newest_ms = std::max(segment.newest_ms, record.timestamp_ms);
    if (record.done) continue;
    ++segment.pending_records;
    segment.pending_samples += record.samples;
    segment.pending_bytes += record.body_size;
  }
  if (found == QueueSegment::Found::kNotNow)
    return leave("cannot read " + PlaceOf(number).path() + ": " + std::strerror(errno));
  if (at < file.size()) {
    if (file.HasDamagedHeaderAt(at)) CountCorrupt(PlaceOf(number).path() + ": its last record is damaged");
    file.CutAt(at);
  }
  if (!any) {
    unlinkat(fd_, PlaceOf(number).name.c_str(), 0);
    return;
  }
  segment.bytes = file.size();
  segments_.push_back(std::move(segment));
}

std::optional<int64_t> WriteQueue::last_timestamp_ms() const {
  const std::lock_guard lock(mutex_);
  return last_timestamp_ms_;
}

void WriteQueue::BeginGeneration() {
  const std::lock_guard lock(mutex_);
  ++generation_;
}

Status WriteQueue::Append(QueueRecord record, std::string_view body) {
  const std::lock_guard lock(mutex_);
  const auto refuse = [&](const char* reason, std::string why) {
    Count(reason, record.samples);
    if (!std::exchange(full_, true)) {
      options_.log.warn("remote.queue_full", why + "; samples are dropped until there is room again");
    }
    return Error{std::move(why)};
  };
  DropOld();
  const uint64_t need = QueueSegment::kRecordHeaderBytes + body.size();
  if (need + QueueSegment::kFileHeaderBytes > options_.max_bytes) {
    return refuse("queue_bytes", "a request of " + std::to_string(body.size()) + " bytes is larger than queue_max_bytes, " +
                                     std::to_string(options_.max_bytes));
  }
  if (const uint64_t room = Room(); room < need) {
    return refuse("disk_full", "cannot write " + options_.directory + "/" + options_.name +
                                   ": the filesystem is full, but for " + "what others need");
  }
  if (!appending_ || segments_.back().file->size() + need > std::max(segment_bytes_, need + QueueSegment::kFileHeaderBytes)) {
    if (Status status = MakeSegment(); !status.ok()) return refuse("disk_full", status.error());
  }
  while (segments_.size() > 1 && FileBytes() + need > options_.max_bytes) Drop(0, "queue_bytes");
  Segment& segment = segments_.back();
  record.generation = generation_;
  record.done = record.samples == 0;
  if (Status status = segment.file->Append(record, body); !status.ok()) return refuse("disk_full", status.error());
  Step("record written");
  segment.bytes = segment.file->size();
  segment.newest_ms = std::max(segment.newest_ms, record.timestamp_ms);
  NoteTimestamp(record.timestamp_ms);
  if (!record.done) {
    ++segment.pending_records;
    segment.pending_samples += record.samples;
    segment.pending_bytes += record.body_size;
  }
  if (std::exchange(full_, false)) options_.log.note("remote.queue_full", "the queue takes samples again");
  RemoveDone();
  wake_.notify_all();
  return Done{};
}

Status WriteQueue::MakeSegment() {
  auto made = QueueSegment::Create(PlaceOf(next_number_), options_.mode);
  if (!made.ok()) {
    // Somebody may have removed the directory.
    if (Status status = OpenDirectory(); !status.ok()) return status;
    made = QueueSegment::Create(PlaceOf(next_number_), options_.mode);
    if (!made.ok()) return Error{made.error()};
  }
  Step("segment made");
  segments_.push_back({.number = next_number_++, .file = std::move(made).value(), .bytes = QueueSegment::kFileHeaderBytes});
  appending_ = true;
  return Done{};
}

void WriteQueue::Close() {
  const std::lock_guard lock(mutex_);
  if (Pending() > 0 || !last_timestamp_ms_ || segments_.back().bytes <= kLeastSegmentBytes || !MakeSegment().ok()) return;
  QueueRecord record{.generation = generation_, .timestamp_ms = *last_timestamp_ms_, .done = true};
  if (segments_.back().file->Append(record, "").ok()) return RemoveDone();
  Remove(segments_.back());
  segments_.pop_back();
  appending_ = false;
}

void WriteQueue::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  wake_.notify_all();
}

bool WriteQueue::WaitEmpty(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  wake_.wait_until(lock, deadline, [this] { return stopped_ || (Pending() == 0 && window_.empty()); });
  return Pending() == 0 && window_.empty();
}

// The newest stays: its records tell which timestamps were given away.
void WriteQueue::RemoveDone() {
  for (size_t i = 0; i + 1 < segments_.size();) {
    if (segments_[i].pending_records > 0) {
      ++i;
      continue;
    }
    Remove(segments_[i]);
    segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// Of what is in the newest file, each request is given up when its turn comes.
void WriteQueue::DropOld() {
  while (segments_.size() > 1 && TooOld(segments_.front().newest_ms)) Drop(0, "queue_age");
}

void WriteQueue::Drop(size_t index, const char* reason) {
  const Segment& segment = segments_[index];
  uint64_t samples = segment.pending_samples;
  for (Entry& entry : window_) {
    if (entry.segment != segment.number || !entry.claimed) continue;
    entry.dropped = true;  // counted when it is given up, if it is
    samples -= std::min<uint64_t>(samples, entry.record.samples);
  }
  std::erase_if(window_, [&](const Entry& entry) { return entry.segment == segment.number && !entry.claimed; });
  Count(reason, samples);
  wake_.notify_all();  // that may have been all
  if (samples > 0) {
    options_.log.warn("remote.dropped",
                      std::to_string(samples) + " samples, the oldest that waited in " + options_.directory + "/" +
                          options_.name + ", are dropped: " +
                          (std::string_view(reason) == "queue_age" ? "they are older than queue_max_age_seconds"
                                                                   : "the queue has queue_max_bytes"));
  }
  Remove(segment);
  segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(index));
}

void WriteQueue::Remove(const Segment& segment) {
  unlinkat(fd_, PlaceOf(segment.number).name.c_str(), 0);
  Step("segment removed");
}

// Compared without a difference: a record may say anything.
void WriteQueue::NoteTimestamp(int64_t timestamp_ms) {
  const bool was_ahead =
      last_timestamp_ms_ && timestamp_ms<INT64_MAX - kMostAheadMs&& * last_timestamp_ms_> timestamp_ms + kMostAheadMs;
  if (!last_timestamp_ms_ || timestamp_ms > *last_timestamp_ms_ || was_ahead) last_timestamp_ms_ = timestamp_ms;
}

bool WriteQueue::TooOld(int64_t timestamp_ms) const { return timestamp_ms < options_.now_ms() - options_.max_age.count(); }

uint64_t WriteQueue::FileBytes() const {
  uint64_t bytes = 0;
  for (const Segment& segment : segments_) bytes += segment.bytes;
  return bytes;
}

uint64_t WriteQueue::Pending() const {
  uint64_t records = 0;
  for (const Segment& segment : segments_) records += segment.pending_records;
  return records;
}

// A filesystem in memory is the workers' as well, who stop growing where a quarter is free: half of it stays theirs.
uint64_t WriteQueue::Room() const {
  if (options_.room) return options_.room();
  struct statfs info {};
  if (fstatfs(fd_, &info) != 0) return UINT64_MAX;
  const auto block = static_cast<uint64_t>(info.f_bsize);
  const uint64_t reserve = info.f_blocks / (info.f_type == TMPFS_MAGIC ? 2 : 50) * block;
  const uint64_t free = info.f_bavail * block;
  return info.f_blocks == 0 ? UINT64_MAX : free - std::min(free, reserve);
}

QueueSegment::Place WriteQueue::PlaceOf(uint64_t number) const {
  return {.directory_fd = fd_, .directory = options_.directory + "/" + options_.name, .name = NameOf(number)};
}

void WriteQueue::CountCorrupt(const std::string& what) {
  ++corrupt_places_;
  options_.log.warn("remote.queue", what + "; it is left out, and the rest goes on");
}

WriteQueue::Stats WriteQueue::stats() {
  const std::lock_guard lock(mutex_);
  Stats stats;
  for (const Segment& segment : segments_) {
    stats.pending_records += segment.pending_records;
    stats.pending_samples += segment.pending_samples;
    stats.pending_bytes += segment.pending_bytes;
    stats.file_bytes += segment.bytes;
  }
  FillWindow();
  if (!window_.empty()) stats.oldest_pending_ms = window_.front().record.timestamp_ms;
  stats.dropped_samples = dropped_samples_;
  stats.corrupt_places = corrupt_places_;
  return stats;
}

}  // namespace persia::agent
