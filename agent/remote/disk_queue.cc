// The file of a request is a journal with one record: the body.
#include "remote/disk_queue.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "files/journal.h"
#include "files/journal_file.h"
#include "trusted_file.h"

namespace persia::agent {
namespace {

constexpr JournalFormat kRequestFormat{.magic = {'P', 'R', 'S', 'M', 'R', 'W', 'Q', '\n'}, .version = 1};

constexpr std::string_view kSuffix = ".queue";
constexpr std::string_view kNative = ".native";
constexpr size_t kDigits = 12;  // of a number, so that names are in the order of the queue

// The pause before an unreadable file is tried again.
constexpr auto kRetryInterval = std::chrono::seconds(1);

bool TakeSuffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

uint64_t BytesOnDisk(uint64_t file_bytes) {
  constexpr uint64_t kBlock = 4096;
  return (file_bytes + kBlock - 1) / kBlock * kBlock;
}

}  // namespace

std::string QueueRecord::FileName() const {
  const std::string digits = std::to_string(number);
  return std::string(kDigits - std::min(kDigits, digits.size()), '0') + digits + '.' + std::to_string(timestamp_ms) + '.' +
         std::to_string(samples) + std::string(is_native ? kNative : "") + std::string(kSuffix);
}

std::optional<QueueRecord> QueueRecord::OfFileName(std::string_view name) {
  QueueRecord record;
  if (!TakeSuffix(name, kSuffix)) return std::nullopt;
  record.is_native = TakeSuffix(name, kNative);
  const size_t first = name.find('.');
  const size_t second = name.find('.', first + 1);
  const bool is_name = first == kDigits && second != std::string_view::npos &&
                       ParseNumber(name.substr(0, first), record.number) &&
                       ParseNumber(name.substr(first + 1, second - first - 1), record.timestamp_ms) &&
                       ParseNumber(name.substr(second + 1), record.samples);
  return is_name ? std::optional(record) : std::nullopt;
}

DiskQueue::DiskQueue(Options options) : options_(std::move(options)) { counts_.queue_max_bytes = options_.max_bytes; }

Result<std::unique_ptr<DiskQueue>> DiskQueue::Open(Options options) {
  std::unique_ptr<DiskQueue> queue(new DiskQueue(std::move(options)));
  const MutexLock lock(queue->mutex_);
  if (Status status = queue->OpenDirectory(); !status.ok()) return Error{status.error()};
  if (Status status = queue->ReadDirectory(); !status.ok()) return Error{status.error()};
  return queue;
}

Status DiskQueue::OpenDirectory() {
  // A user who may write the files may also create some.
  const mode_t mode = options_.mode | (options_.mode >> 2 & 0111);
  if (mkdirat(options_.directory_fd, options_.name.c_str(), mode) == 0)
    fchmodat(options_.directory_fd, options_.name.c_str(), mode, 0);  // regardless of the umask
  else if (errno != EEXIST)
    return SystemError("cannot create " + path());
  OwnedFd fd(openat(options_.directory_fd, options_.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return SystemError("cannot open " + path());
  metrics::FileTrust trust = metrics::TrustIn(options_.directory_fd);
  trust.type = S_IFDIR;
  trust.may_have_names = true;  // of its directories, too
  if (const std::string distrust = metrics::DistrustOf(info, trust); !distrust.empty())
    return Error{path() + " " + distrust + "; remove it"};
  directory_ = std::move(fd);
  return Done{};
}

// An incomplete list would be worse than none: a new file would replace an existing one.
Status DiskQueue::ReadDirectory() {
  std::vector<QueueRecord> found;
  DIR* const directory = fdopendir(openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  errno = directory == nullptr ? errno : 0;
  while (const dirent* entry = directory == nullptr ? nullptr : readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (const auto record = QueueRecord::OfFileName(name)) {
      struct stat info {};
      fstatat(directory_.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW);
      found.push_back(*record);
      found.back().bytes = BytesOnDisk(static_cast<uint64_t>(info.st_size));
    } else if (name.ends_with(kDraftSuffix)) {
      unlinkat(directory_.get(), entry->d_name, 0);  // of an agent that was killed
    } else if (name.ends_with(kSuffix)) {
      LogWarning("remote.queue", path() + "/" + std::string(name) + " is not a file name of a disk queue; it is ignored");
    }
    errno = 0;
  }
  const int error = errno;
  if (directory != nullptr) closedir(directory);
  if (error != 0) return SystemError("cannot list " + path(), error);
  std::ranges::sort(found, {}, &QueueRecord::number);
  const int64_t max_ms = now_ms() + kMaxClockLeadMs;
  for (const QueueRecord& record : found) {
    Insert(record);
    if (record.timestamp_ms <= max_ms) NoteTimestamp(record.timestamp_ms);
    next_number_ = record.number + 1;
  }
  return Done{};
}

std::optional<int64_t> DiskQueue::last_timestamp_ms() const {
  const MutexLock lock(mutex_);
  return last_timestamp_ms_;
}

Status DiskQueue::Append(QueueRecord record, std::string_view body, Durability durability) {
  const std::string content = JournalCheckpoint(kRequestFormat, OnlyRecord(body));
  record.bytes = BytesOnDisk(content.size());
  DurableFile file;
  {
    const MutexLock lock(mutex_);
    NoteCollection(record);
    if (const uint64_t limit = std::min(options_.max_bytes, kMaxFileBytes); record.bytes > limit) {
      return Refuse("queue_bytes", record,
                    "a request of " + std::to_string(record.bytes) + " bytes is larger than the limit of " +
                        std::to_string(limit) + " bytes (queue_max_bytes, and 24 MiB)");
    }
    // All requests pass through the queue: a nearly full disk must not refuse those that a healthy target takes immediately.
    const uint64_t always = std::max(options_.min_backlog_bytes, former_collection_bytes_ + collection_bytes_);
    if (FreeBytes() < record.bytes && counts_.pending_bytes + record.bytes > always)
      return Refuse("disk_full", record, "cannot write " + path() + ": the filesystem is full, except for a reserve");
    record.number = next_number_++;
    file = FileOf(record);
  }
  file.is_flushed = durability == Durability::kPowerCut;
  // Without the lock: a disk may take long.
  auto written = ReplaceDurable(file, options_.mode, content, options_.after_step);
  if (file.is_flushed) fsync(options_.directory_fd);  // the queue's directory may be new
  const MutexLock lock(mutex_);
  if (!written.ok() && OpenDirectory().ok())  // the directory may have been removed
    written = ReplaceDurable(FileOf(record), options_.mode, content, options_.after_step);
  if (!written.ok()) return Refuse("disk_full", record, written.error());
  Insert(record);
  NoteTimestamp(record.timestamp_ms);
  if (std::exchange(is_full_, false)) LogInfo("remote.queue_full", "the disk queue takes samples again");
  while (Oldest() != nullptr && counts_.queue_bytes > options_.max_bytes) DropOldest("queue_bytes");
  changed_.NotifyAll();
  return Done{};
}

Error DiskQueue::Refuse(const char* reason, const QueueRecord& record, const std::string& why) {
  counts_.dropped_samples[reason] += record.samples;
  if (!std::exchange(is_full_, true))
    LogWarning("remote.queue_full", why + "; samples are dropped until the disk queue has space again");
  return Error{why};
}

std::optional<DiskQueue::Request> DiskQueue::Next() {
  const MutexLock lock(mutex_);
  while (!stopped_) {
    if (const QueueRecord* oldest = Oldest()) {
      if (auto request = ReadOldest(*oldest)) return request;
      if (!is_unreadable_) continue;
    }
    if (ends_when_empty_ && counts_.pending_records == 0) break;
    if (is_unreadable_)
      changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kRetryInterval);
    else
      changed_.Wait(mutex_);
  }
  return std::nullopt;
}

// Nothing: it cannot be read now (is_unreadable_), or was damaged and is removed.
std::optional<DiskQueue::Request> DiskQueue::ReadOldest(const QueueRecord& oldest) {
  const DurableFile place = FileOf(oldest);
  DiskJournalFile file(
      {.directory_fd = place.directory_fd, .directory = place.directory, .name = place.name, .max_bytes = kMaxFileBytes});
  std::string broken;
  const auto content = ReadJournal(file, kRequestFormat, /*look=*/false, broken);
  if (!content.ok()) {
    if (!std::exchange(is_unreadable_, true))
      LogWarning("remote.queue_read", content.error() + "; the agent tries again each second, and later requests wait");
    return std::nullopt;
  }
  if (std::exchange(is_unreadable_, false)) LogInfo("remote.queue_read", "the disk queue can be read again");
  if (const auto body = content.value().only()) {
    taken_ = oldest;
    return Request{oldest, std::string(*body)};
  }
  ++counts_.damaged_places;
  counts_.dropped_samples["corrupt"] += oldest.samples;
  LogWarning("remote.queue", (broken.empty() ? place.path() + " is gone" : broken) + "; " + std::to_string(oldest.samples) +
                                 " samples in it are lost");
  RemoveOldest();
  return std::nullopt;
}

// The oldest request that is pending, after those that are done or too old. Null: there is none.
const QueueRecord* DiskQueue::Oldest() {
  while (!records_.empty()) {
    const QueueRecord& oldest = records_.front();
    const bool is_done = oldest.samples == 0;
    if (!is_done && !IsExpired(oldest.timestamp_ms)) return &oldest;
    if (is_done && records_.size() == 1) break;
    if (is_done)
      RemoveOldest();
    else
      DropOldest("queue_age");
  }
  return nullptr;
}

bool DiskQueue::StillWanted() {
  const MutexLock lock(mutex_);
  const QueueRecord* const oldest = Oldest();
  return oldest != nullptr && taken_ && oldest->number == taken_->number;
}

void DiskQueue::Finish(uint32_t unanswered) {
  const MutexLock lock(mutex_);
  if (unanswered > 0) counts_.dropped_samples[IsExpired(taken_->timestamp_ms) ? "queue_age" : "queue_bytes"] += unanswered;
  if (const QueueRecord& oldest = records_.front(); oldest.number == taken_->number && oldest.samples > 0) RemoveOldest();
  taken_.reset();
  if (counts_.pending_records == 0) reported_drops_.clear();
}

void DiskQueue::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  changed_.NotifyAll();
}

void DiskQueue::EndWhenEmpty() {
  const MutexLock lock(mutex_);
  ends_when_empty_ = true;
  changed_.NotifyAll();
}

void DiskQueue::Insert(const QueueRecord& record) {
  records_.push_back(record);
  counts_.queue_bytes += record.bytes;
  if (record.samples == 0) return;
  ++counts_.pending_records;
  counts_.pending_samples += record.samples;
  counts_.pending_bytes += record.bytes;
}

// The newest stays, as one that is done: its name tells the last timestamp.
void DiskQueue::RemoveOldest() {
  QueueRecord& oldest = records_.front();
  const std::string name = oldest.FileName();
  if (oldest.samples > 0) {
    --counts_.pending_records;
    counts_.pending_samples -= oldest.samples;
    counts_.pending_bytes -= oldest.bytes;
  }
  if (records_.size() == 1) {
    oldest.samples = 0;
    renameat(directory_.get(), name.c_str(), directory_.get(), oldest.FileName().c_str());
  } else {
    unlinkat(directory_.get(), name.c_str(), 0);
    counts_.queue_bytes -= oldest.bytes;
    records_.pop_front();
  }
  if (options_.after_step) options_.after_step("request done");
}

void DiskQueue::DropOldest(const char* reason) {
  const bool is_taken = taken_ && taken_->number == records_.front().number;
  const uint32_t samples = is_taken ? 0 : records_.front().samples;  // Finish counts those of a request in flight
  counts_.dropped_samples[reason] += samples;
  if (samples > 0 && reported_drops_.insert(reason).second) {
    const bool is_expired = std::string_view(reason) == "queue_age";
    LogWarning("remote.dropped",
               "samples, the oldest in " + path() + ", are dropped: " +
                   (is_expired ? "they are older than sample_age_limit" : "the queue has reached queue_max_bytes") +
                   "; they are counted, and not logged again until the queue is empty");
  }
  RemoveOldest();
}

// Compares without a difference, which could overflow: a record may hold any timestamp.
void DiskQueue::NoteTimestamp(int64_t timestamp_ms) {
  const bool was_ahead = timestamp_ms < INT64_MAX - kMaxClockLeadMs && last_timestamp_ms_ > timestamp_ms + kMaxClockLeadMs;
  if (!last_timestamp_ms_ || timestamp_ms > *last_timestamp_ms_ || was_ahead) last_timestamp_ms_ = timestamp_ms;
}

void DiskQueue::NoteCollection(const QueueRecord& record) {
  if (record.timestamp_ms != collection_ms_) former_collection_bytes_ = std::exchange(collection_bytes_, 0);
  collection_ms_ = record.timestamp_ms;
  collection_bytes_ += record.bytes;
}

// In memory, half of the filesystem is left to the workers, whose segments stop growing when a quarter is free.
uint64_t DiskQueue::FreeBytes() const {
  if (options_.free_bytes) return options_.free_bytes();
  struct statfs info {};
  if (fstatfs(directory_.get(), &info) != 0 || info.f_blocks == 0) return UINT64_MAX;
  const auto block = static_cast<uint64_t>(info.f_bsize);
  const uint64_t reserve = info.f_blocks / (info.f_type == TMPFS_MAGIC ? 2 : 50) * block;
  const uint64_t free = info.f_bavail * block;
  return free - std::min(free, reserve);
}

DurableFile DiskQueue::FileOf(const QueueRecord& record) const {
  return {.directory_fd = directory_.get(), .directory = path(), .name = record.FileName()};
}

bool DiskQueue::empty() const {
  const MutexLock lock(mutex_);
  return counts_.pending_records == 0;
}

RemoteWriteCounts DiskQueue::stats() {
  const MutexLock lock(mutex_);
  const QueueRecord* const oldest = Oldest();
  RemoteWriteCounts stats = counts_;
  if (oldest != nullptr) stats.oldest_pending_ms = oldest->timestamp_ms;
  return stats;
}

}  // namespace persia::agent
