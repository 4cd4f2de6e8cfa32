// How requests leave a queue: a cursor walks over its files, and the headers of the next ones that are pending stand in a
// window.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "remote/write_queue.h"

namespace persia::agent {
namespace {

// Enough for each of many shards to find its next request; a header each.
constexpr size_t kWindow = 512;

// What cannot be read now is tried again.
constexpr auto kPause = std::chrono::seconds(1);

}  // namespace

// Moves the cursor to the next file that is there, and opens it. False: there is none, or it cannot be read now.
bool WriteQueue::OpenAtCursor() {
  for (;;) {
    const auto segment = std::find_if(segments_.begin(), segments_.end(),
                                      [this](const Segment& candidate) { return candidate.number >= cursor_segment_; });
    if (segment == segments_.end()) return false;
    if (segment->number != cursor_segment_) MoveCursorTo(segment->number);
    if (segment->unread) {
      std::string why;
      const QueueSegment::Found found = Scan(*segment, why);
      if (found == QueueSegment::Found::kNotNow) {
        NotNow(why, cursor_waits_);
        return false;
      }
      if (found == QueueSegment::Found::kNo) {
        segments_.erase(segment);
        wake_.notify_all();  // that may have been all
        continue;
      }
    }
    if (segment->file != nullptr) return true;
    QueueSegment::Found found{};
    auto opened = QueueSegment::Open(PlaceOf(segment->number), found);
    if (opened.ok()) {
      segment->file = std::move(opened).value();
      return true;
    }
    if (found == QueueSegment::Found::kNotNow) {
      NotNow(opened.error(), cursor_waits_);
      return false;
    }
    CountCorrupt(opened.error());
    MoveCursorTo(segment->number + 1);
    LeaveSegment(*segment);
  }
}

// Nothing is given up for it: the cursor stays.
void WriteQueue::NotNow(const std::string& what, bool& told) {
  if (std::exchange(told, true)) return;
  options_.log.warn("remote.queue_read", what + "; it is tried again each second, and what is behind it waits");
}

void WriteQueue::ReadAgain(bool& told) {
  if (std::exchange(told, false)) options_.log.note("remote.queue_read", "the queue can be read again");
}

void WriteQueue::FillWindow() {
  while (window_.size() < kWindow && OpenAtCursor()) {
    const auto segment = std::find_if(segments_.begin(), segments_.end(),
                                      [this](const Segment& candidate) { return candidate.number == cursor_segment_; });
    QueueRecord record;
    uint64_t skipped = 0;
    const QueueSegment::Found found = cursor_at_ < segment->bytes
                                          ? segment->file->Next(cursor_at_, segment->bytes, record, skipped)
                                          : QueueSegment::Found::kNo;
    if (found == QueueSegment::Found::kNotNow) {
      NotNow("cannot read " + PlaceOf(segment->number).path() + ": " + std::strerror(errno), cursor_waits_);
      break;
    }
    ReadAgain(cursor_waits_);
    if (found == QueueSegment::Found::kYes) {
      if (skipped > 0) {
        CountCorrupt(PlaceOf(segment->number).path() + ": " + std::to_string(skipped) + " bytes at " +
                     std::to_string(cursor_at_) + " are damaged");
      }
      cursor_at_ = record.end();
      if (!record.done) {
        window_.push_back({.id = next_id_++, .segment = segment->number, .file = segment->file, .record = record});
      }
      continue;
    }
    if (appending_ && segment + 1 == segments_.end()) {
      if (cursor_at_ < segment->bytes) {
        CountCorrupt(PlaceOf(segment->number).path() + ": the bytes from " + std::to_string(cursor_at_) + " on are damaged");
        cursor_at_ = segment->bytes;
      }
      break;
    }
    MoveCursorTo(segment->number + 1);
    LeaveSegment(*segment);
  }
  RemoveDone();
}

// All that can be read of it is in the window: whatever else was pending is damaged.
void WriteQueue::LeaveSegment(Segment& segment) {
  uint64_t samples = 0;
  uint64_t bytes = 0;
  uint64_t records = 0;
  for (const Entry& entry : window_) {
    if (entry.segment != segment.number) continue;
    ++records;
    samples += entry.record.samples;
    bytes += entry.record.body_size;
  }
  Count("corrupt", segment.pending_samples - std::min(segment.pending_samples, samples));
  segment.pending_records = records;
  segment.pending_samples = samples;
  segment.pending_bytes = bytes;
  wake_.notify_all();    // that may have been all
  segment.file.reset();  // the window has it as long as it is needed
}

// The oldest that is neither under way nor behind another one of its shard, nor behind another generation.
WriteQueue::Entry* WriteQueue::FirstFree() {
  std::vector<bool> busy;
  for (Entry& entry : window_) {
    if (entry.record.generation != window_.front().record.generation) return nullptr;
    const size_t shard = entry.record.shard % kWindow;  // a damaged number is a shard like others
    if (busy.size() <= shard) busy.resize(shard + 1);
    if (!entry.claimed && !busy[shard]) return &entry;
    busy[shard] = true;
  }
  return nullptr;
}

std::optional<WriteQueue::Claim> WriteQueue::Next() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopped_) return std::nullopt;
    DropOld();
    FillWindow();
    Entry* const free = FirstFree();
    if (free == nullptr) {
      if (cursor_waits_) {
        wake_.wait_for(lock, kPause);
      } else {
        wake_.wait(lock);
      }
      continue;
    }
    free->claimed = true;
    Claim claim{.record = free->record, .body = {}, .id = free->id};
    const std::shared_ptr<QueueSegment> file = free->file;
    lock.unlock();
    QueueSegment::Found found{};
    auto body = file->Body(claim.record, found);
    if (body.ok()) {
      claim.body = std::move(body).value();
      lock.lock();
      ReadAgain(request_waits_);
      return claim;
    }
    lock.lock();
    if (found == QueueSegment::Found::kNotNow && GiveBack(claim)) {
      NotNow(body.error(), request_waits_);
      wake_.wait_for(lock, kPause);
      continue;
    }
    CountCorrupt(body.error());
    Count("corrupt", claim.record.samples);
    lock.unlock();
    Finish(claim, Outcome::kSent);  // it is counted already
    lock.lock();
  }
}

// False: it was dropped meanwhile.
bool WriteQueue::GiveBack(const Claim& claim) {
  const auto entry = std::find_if(window_.begin(), window_.end(), [&](const Entry& e) { return e.id == claim.id; });
  if (entry == window_.end() || entry->dropped) return false;
  entry->claimed = false;
  return true;
}

bool WriteQueue::StillWanted(const Claim& claim) {
  const std::lock_guard lock(mutex_);
  DropOld();
  const auto entry = std::find_if(window_.begin(), window_.end(), [&](const Entry& e) { return e.id == claim.id; });
  return entry != window_.end() && !entry->dropped && !TooOld(claim.record.timestamp_ms);
}

void WriteQueue::Finish(const Claim& claim, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  const auto entry = std::find_if(window_.begin(), window_.end(), [&](const Entry& e) { return e.id == claim.id; });
  if (entry == window_.end()) return;
  if (outcome == Outcome::kDropped) {
    Count(TooOld(claim.record.timestamp_ms) ? "queue_age" : "queue_bytes", claim.record.samples);
  }
  entry->file->MarkDone(entry->record);
  Step("record done");
  const auto segment = std::find_if(segments_.begin(), segments_.end(),
                                    [&](const Segment& candidate) { return candidate.number == entry->segment; });
  if (segment != segments_.end()) {
    --segment->pending_records;
    segment->pending_samples -= claim.record.samples;
    segment->pending_bytes -= claim.record.body_size;
  }
  window_.erase(entry);
  RemoveDone();
  wake_.notify_all();
}

}  // namespace persia::agent
