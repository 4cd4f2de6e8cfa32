#include "remote/write_queue.h"

#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace persia::agent {
namespace {

constexpr uint64_t kLeastSegmentBytes = 64 * 1024;

}  // namespace

WriteQueue::WriteQueue(Options options)
    : options_(std::move(options)),
      segment_bytes_(std::clamp(options_.max_bytes / 16, kLeastSegmentBytes, QueueSegment::kMostSegmentBytes)) {}

WriteQueue::~WriteQueue() {
  if (fd_ >= 0) close(fd_);
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
  NoteTick(record.timestamp_ms, body.size());
  const uint64_t need = QueueSegment::kRecordHeaderBytes + body.size();
  if (body.size() > QueueSegment::kMostBodyBytes) {
    return refuse("queue_bytes", "a request of " + std::to_string(body.size()) + " bytes, which are too many for a record");
  }
  if (need + QueueSegment::kFileHeaderBytes > options_.max_bytes) {
    return refuse("queue_bytes", "a request of " + std::to_string(body.size()) + " bytes is larger than queue_max_bytes, " +
                                     std::to_string(options_.max_bytes));
  }
  const bool is_short_of_room = Room() < need;
  if (is_short_of_room && !IsLittle(body.size())) {
    return refuse("disk_full", "cannot write " + options_.directory + "/" + options_.name +
                                   ": the filesystem is full, but for " + "what others need");
  }
  bool begins =
      !appending_ || segments_.back().file->size() + need > std::max(segment_bytes_, need + QueueSegment::kFileHeaderBytes);
  const bool holds_room = !begins && is_short_of_room && Pending() == 0 && segments_.back().bytes > kLeastSegmentBytes;
  if (begins || holds_room) {
    const Status made = MakeSegment();
    if (!made.ok() && begins) return refuse("disk_full", made.error());
    begins = made.ok();
  }
  Segment& segment = segments_.back();
  record.generation = generation_;
  record.done = record.samples == 0;
  if (Status status = segment.file->Append(record, body); !status.ok()) {
    if (begins) RemoveNewest();  // what it follows remembers the last timestamp
    return refuse("disk_full", status.error());
  }
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
  while (segments_.size() > 1 && FileBytes() > options_.max_bytes) Drop(0, "queue_bytes");
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
  if (Pending() > 0 || !last_timestamp_ms_) return;
  if (!segments_.empty() && segments_.back().bytes <= kLeastSegmentBytes) return;
  if (!MakeSegment().ok()) return;
  QueueRecord record{.generation = generation_, .timestamp_ms = *last_timestamp_ms_, .done = true};
  if (segments_.back().file->Append(record, "").ok()) return RemoveDone();
  RemoveNewest();
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

void WriteQueue::RemoveNewest() {
  Remove(segments_.back());
  segments_.pop_back();
  appending_ = false;
}

// The newest stays: its records tell which timestamps were given away.
void WriteQueue::RemoveDone() {
  for (size_t i = 0; i + 1 < segments_.size();) {
    if (segments_[i].unread || segments_[i].pending_records > 0) {
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
  if (segment.unread) CountCorrupt(PlaceOf(segment.number).path() + " could not be read, and may stay no longer");
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
  for (const Segment& segment : segments_) records += segment.unread ? 1 : segment.pending_records;
  return records;
}

void WriteQueue::NoteTick(int64_t timestamp_ms, uint64_t bytes) {
  if (timestamp_ms != tick_ms_) former_tick_bytes_ = std::exchange(tick_bytes_, 0);
  tick_ms_ = timestamp_ms;
  tick_bytes_ += bytes;
}

// Whether with so many bytes more no backlog waits, but what a target that is well takes in a moment. All goes through the
// queue: want of room must not stop that.
bool WriteQueue::IsLittle(uint64_t bytes) const {
  for (const Segment& segment : segments_) bytes += segment.unread ? segment.bytes : segment.pending_bytes;
  return bytes <= std::max(options_.little_bytes, former_tick_bytes_ + tick_bytes_);
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
