// Appends requests, and drops unsent ones: limits of size, age and free disk space.
#include "remote/disk_queue.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/log.h"

namespace persia::agent {
namespace {

constexpr uint64_t kMinFileBytes = 64 * 1024;

}  // namespace

DiskQueue::DiskQueue(Options options)
    : options_(std::move(options)),
      rotate_bytes_(std::clamp(options_.max_bytes / 16, kMinFileBytes, QueueFile::kRotateBytes)) {}

std::optional<int64_t> DiskQueue::last_timestamp_ms() const {
  const MutexLock lock(mutex_);
  return last_timestamp_ms_;
}

void DiskQueue::BeginGeneration() {
  const MutexLock lock(mutex_);
  ++generation_;
}

Status DiskQueue::Append(QueueRecord record, std::string_view body) {
  constexpr uint64_t kHeadersBytes = QueueFile::kFileHeaderBytes + QueueRecord::kHeaderBytes;
  const MutexLock lock(mutex_);
  DropExpired();
  NoteCollection(record.timestamp_ms, body.size());
  if (const uint64_t limit = std::min(options_.max_bytes, QueueFile::kMaxBodyBytes + kHeadersBytes);
      body.size() + kHeadersBytes > limit) {
    return Refuse("queue_bytes", record,
                  "a request of " + std::to_string(body.size()) + " bytes is larger than the limit of " +
                      std::to_string(limit) + " bytes (queue_max_bytes, and 24 MiB)");
  }
  const uint64_t need = QueueRecord::kHeaderBytes + body.size();
  const bool is_short_of_space = FreeBytes() < need;
  if (is_short_of_space && !FitsMinBacklog(body.size()))
    return Refuse("disk_full", record, "cannot write " + path() + ": the filesystem is full, except for a reserve");
  bool is_new = !appending_ || files_.rbegin()->second.bytes + need > std::max(rotate_bytes_, body.size() + kHeadersBytes);
  const bool frees_space = !is_new && is_short_of_space && NothingPending() && files_.rbegin()->second.bytes > kMinFileBytes;
  if (is_new || frees_space) {
    const Status created = CreateFile();
    if (!created.ok() && is_new) return Refuse("disk_full", record, created.error());
    is_new = created.ok();
  }
  File& file = files_.rbegin()->second;
  record.generation = generation_;
  record.done = record.samples == 0 ? 1 : 0;
  if (const Status written = file.open->Append(record, body); !written.ok()) {
    if (is_new) RemoveNewest();  // the file before it tells the last timestamp
    return Refuse("disk_full", record, written.error());
  }
  Step("record written");
  file.bytes = file.open->size();
  file.newest_ms = std::max(file.newest_ms, record.timestamp_ms);
  NoteTimestamp(record.timestamp_ms);
  if (!record.done) file.pending.Add(record);
  if (std::exchange(is_full_, false)) LogInfo("remote.queue_full", "the disk queue takes samples again");
  while (files_.size() > 1 && FileBytes() > options_.max_bytes) DropOldest("queue_bytes");
  RemoveDone();
  changed_.NotifyAll();
  return Done{};
}

void DiskQueue::Sync() {
  std::vector<std::shared_ptr<QueueFile>> open;
  OwnedFd directory;
  {
    const MutexLock lock(mutex_);
    for (const auto& [number, file] : files_)
      if (file.open != nullptr) open.push_back(file.open);
    directory = OwnedFd(fcntl(directory_.get(), F_DUPFD_CLOEXEC, 0));
  }
  // Without the lock: a disk may take long.
  for (const std::shared_ptr<QueueFile>& file : open) file->Sync();
  if (directory.valid()) fsync(directory.get());
  fsync(options_.directory_fd);  // the queue's directory may be new
}

Error DiskQueue::Refuse(const char* reason, const QueueRecord& record, const std::string& why) {
  dropped_samples_[reason] += record.samples;
  if (!std::exchange(is_full_, true))
    LogWarning("remote.queue_full", why + "; samples are dropped until the disk queue has space again");
  return Error{why};
}

Status DiskQueue::CreateFile() {
  auto created = QueueFile::Create(PlaceOf(next_number_), options_.mode);
  if (!created.ok()) {
    // The directory may have been removed.
    if (Status status = OpenDirectory(); !status.ok()) return status;
    created = QueueFile::Create(PlaceOf(next_number_), options_.mode);
    if (!created.ok()) return Error{created.error()};
  }
  Step("file created");
  files_[next_number_++] = {.open = std::move(created).value(), .bytes = QueueFile::kFileHeaderBytes};
  appending_ = true;
  return Done{};
}

void DiskQueue::Close() {
  const MutexLock lock(mutex_);
  if (!NothingPending() || !last_timestamp_ms_) return;
  if (!files_.empty() && files_.rbegin()->second.bytes <= kMinFileBytes) return;
  if (!CreateFile().ok()) return;
  QueueRecord record{.generation = generation_, .timestamp_ms = *last_timestamp_ms_, .done = 1};
  if (files_.rbegin()->second.open->Append(record, "").ok()) return RemoveDone();
  RemoveNewest();
}

void DiskQueue::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  changed_.NotifyAll();
}

bool DiskQueue::WaitEmpty(std::chrono::steady_clock::time_point deadline) {
  const MutexLock lock(mutex_);
  for (;;) {
    const bool is_empty = NothingPending() && window_.empty();
    if (is_empty || stopped_ || std::chrono::steady_clock::now() >= deadline) return is_empty;
    changed_.WaitUntil(mutex_, deadline);
  }
}

void DiskQueue::RemoveNewest() {
  Unlink(files_.rbegin()->first);
  files_.erase(std::prev(files_.end()));
  appending_ = false;
}

// The newest file stays, since its records tell the last timestamp.
void DiskQueue::RemoveDone() {
  for (auto file = files_.begin(); file != files_.end() && std::next(file) != files_.end();) {
    if (file->second.is_unread || file->second.pending.records > 0) {
      ++file;
    } else {
      Unlink(file->first);
      file = files_.erase(file);
    }
  }
}

// In the newest file, each request is dropped when its turn comes.
void DiskQueue::DropExpired() {
  while (files_.size() > 1 && IsExpired(files_.begin()->second.newest_ms)) DropOldest("queue_age");
}

void DiskQueue::DropOldest(const char* reason) {
  const uint64_t number = files_.begin()->first;
  const File& file = files_.begin()->second;
  if (file.is_unread) CountDamage(PlaceOf(number).path() + " could not be read before it had to be dropped");
  uint64_t samples = file.pending.samples;
  std::erase_if(window_, [number, &samples](const auto& item) {
    const Entry& entry = item.second;
    if (entry.request.file_number != number) return false;
    if (entry.is_claimed) samples -= std::min<uint64_t>(samples, entry.request.record.samples);  // Finish counts those
    return !entry.is_claimed;
  });
  dropped_samples_[reason] += samples;
  if (samples > 0 && reported_drops_.insert(reason).second) {
    const bool is_expired = std::string_view(reason) == "queue_age";
    LogWarning("remote.dropped",
               std::to_string(samples) + " samples, the oldest in " + path() + ", are dropped: " +
                   (is_expired ? "they are older than sample_age_limit" : "the queue has reached queue_max_bytes") +
                   "; later ones are counted, and not logged until the queue is empty");
  }
  Unlink(number);
  files_.erase(files_.begin());
  changed_.NotifyAll();  // the queue may be empty now
}

void DiskQueue::Unlink(uint64_t number) {
  unlinkat(directory_.get(), PlaceOf(number).name.c_str(), 0);
  Step("file removed");
}

// Compares without a difference, which could overflow: a record may hold any timestamp.
void DiskQueue::NoteTimestamp(int64_t timestamp_ms) {
  const bool was_ahead = timestamp_ms < INT64_MAX - kMaxClockLeadMs && last_timestamp_ms_ > timestamp_ms + kMaxClockLeadMs;
  if (!last_timestamp_ms_ || timestamp_ms > *last_timestamp_ms_ || was_ahead) last_timestamp_ms_ = timestamp_ms;
}

void DiskQueue::NoteCollection(int64_t timestamp_ms, uint64_t bytes) {
  if (timestamp_ms != collection_ms_) former_collection_bytes_ = std::exchange(collection_bytes_, 0);
  collection_ms_ = timestamp_ms;
  collection_bytes_ += bytes;
}

// All requests pass through the queue, so a nearly full disk must not refuse requests that a healthy target takes immediately.
bool DiskQueue::FitsMinBacklog(uint64_t bytes) const {
  for (const auto& [number, file] : files_) bytes += file.is_unread ? file.bytes : file.pending.bytes;
  return bytes <= std::max(options_.min_backlog_bytes, former_collection_bytes_ + collection_bytes_);
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

uint64_t DiskQueue::FileBytes() const {
  uint64_t bytes = 0;
  for (const auto& [number, file] : files_) bytes += file.bytes;
  return bytes;
}

bool DiskQueue::NothingPending() const {
  return std::none_of(
      files_.begin(), files_.end(), [](const auto& item) { return item.second.is_unread || item.second.pending.records > 0; });
}

void DiskQueue::CountDamage(const std::string& what) {
  ++corrupt_places_;
  LogWarning("remote.queue", what + "; it is skipped");
}

DiskQueue::Stats DiskQueue::stats() {
  const MutexLock lock(mutex_);
  Stats stats{.file_bytes = FileBytes()};
  for (const auto& [number, file] : files_) {
    stats.pending_records += file.pending.records;
    stats.pending_samples += file.pending.samples;
    stats.pending_bytes += file.pending.bytes;
  }
  FillWindow();
  if (!window_.empty()) stats.oldest_pending_ms = window_.begin()->second.request.record.timestamp_ms;
  stats.dropped_samples = dropped_samples_;
  stats.corrupt_places = corrupt_places_;
  return stats;
}

}  // namespace persia::agent
