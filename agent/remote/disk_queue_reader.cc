// Takes requests from the queue: a cursor moves over its files, and a window holds the headers of the next pending requests.
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "remote/disk_queue.h"

namespace persia::agent {
namespace {

using Found = QueueFile::Found;

// Enough for each of many shards to find its next request.
constexpr size_t kWindow = 512;

// The pause before an unreadable file or body is tried again.
constexpr auto kRetryInterval = std::chrono::seconds(1);

}  // namespace

std::optional<DiskQueue::Claim> DiskQueue::Next() {
  std::shared_ptr<QueueFile> file;
  while (auto claim = ClaimOldest(file)) {
    Found found{};
    auto body = file->Body(claim->record, found);
    {
      const MutexLock lock(mutex_);
      if (body.ok()) {
        NoteReadable(body_waits_);
        claim->body = std::move(body).value();
        return claim;
      }
      if (found == Found::kTryLater && GiveBack(*claim)) {
        WarnUnreadable(body.error(), body_waits_);
        changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kRetryInterval);
        continue;
      }
      CountDamage(body.error());
    }
    Finish(*claim, Outcome::kDamaged);
  }
  return std::nullopt;
}

std::optional<DiskQueue::Claim> DiskQueue::ClaimOldest(std::shared_ptr<QueueFile>& file) {
  const MutexLock lock(mutex_);
  while (!stopped_) {
    DropExpired();
    FillWindow();
    if (Entry* const free = FirstFree()) {
      free->is_claimed = true;
      file = free->file;
      return free->request;
    }
    if (cursor_waits_)
      changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kRetryInterval);
    else
      changed_.Wait(mutex_);
  }
  return std::nullopt;
}

// The oldest that is not in flight, of a shard with none in flight, and of the oldest generation.
DiskQueue::Entry* DiskQueue::FirstFree() {
  std::vector<bool> is_busy(kWindow);
  for (auto& [id, entry] : window_) {
    const QueueRecord& record = entry.request.record;
    if (record.generation != window_.begin()->second.request.record.generation) return nullptr;
    const size_t shard = record.shard % kWindow;  // a damaged number is a shard like others
    if (!entry.is_claimed && !is_busy[shard]) return &entry;
    is_busy[shard] = true;
  }
  return nullptr;
}

void DiskQueue::FillWindow() {
  while (window_.size() < kWindow) {
    File* const file = FileAtCursor();
    if (file == nullptr) break;
    QueueRecord record;
    uint64_t skipped = 0;
    const Found found = cursor_at_ < file->bytes ? file->open->Next(cursor_at_, file->bytes, record, skipped) : Found::kNo;
    if (found == Found::kTryLater) {
      WarnUnreadable(SystemError("cannot read " + PlaceOf(cursor_number_).path()).message, cursor_waits_);
      break;
    }
    NoteReadable(cursor_waits_);
    if (found == Found::kYes) {
      if (skipped > 0) {
        CountDamage(PlaceOf(cursor_number_).path() + ": " + std::to_string(skipped) + " bytes at " +
                    std::to_string(cursor_at_) + " are damaged");
      }
      cursor_at_ = record.end();
      if (record.done) continue;
      window_[next_id_] = {.request = {.record = record, .id = next_id_, .file_number = cursor_number_}, .file = file->open};
      ++next_id_;
    } else if (appending_ && cursor_number_ == files_.rbegin()->first) {
      if (cursor_at_ < file->bytes) {
        CountDamage(PlaceOf(cursor_number_).path() + ": the bytes from " + std::to_string(cursor_at_) + " on are damaged");
        cursor_at_ = file->bytes;
      }
      break;
    } else {
      LeaveFile(*file);
    }
  }
  RemoveDone();
}

// Moves the cursor to the next file that exists, and opens it. Null: there is none, or it cannot be read now.
DiskQueue::File* DiskQueue::FileAtCursor() {
  for (;;) {
    const auto next = files_.lower_bound(cursor_number_);
    if (next == files_.end()) return nullptr;
    auto& [number, file] = *next;
    if (number != cursor_number_) MoveCursorTo(number);
    if (file.open != nullptr) return &file;
    Found found = Found::kYes;
    std::string why;
    if (file.is_unread) {
      found = Scan(number, file, why);
      if (found == Found::kNo) {
        files_.erase(next);
        changed_.NotifyAll();  // the queue may be empty now
        continue;
      }
    }
    if (found == Found::kYes) {
      auto opened = QueueFile::Open(PlaceOf(number), found);
      if (opened.ok()) {
        file.open = std::move(opened).value();
        return &file;
      }
      why = opened.error();
    }
    if (found == Found::kTryLater) {
      WarnUnreadable(why, cursor_waits_);
      return nullptr;
    }
    CountDamage(why);
    LeaveFile(file);
  }
}

void DiskQueue::MoveCursorTo(uint64_t number) {
  cursor_number_ = number;
  cursor_at_ = QueueFile::kFileHeaderBytes;
}

// The window has all readable requests of the file at the cursor: all other pending ones are damaged.
void DiskQueue::LeaveFile(File& file) {
  Pending in_window;
  for (const auto& [id, entry] : window_)
    if (entry.request.file_number == cursor_number_) in_window.Add(entry.request.record);
  if (file.pending.samples > in_window.samples) dropped_samples_["corrupt"] += file.pending.samples - in_window.samples;
  file.pending = in_window;
  file.open.reset();  // requests in the window hold it as long as they need it
  MoveCursorTo(cursor_number_ + 1);
  changed_.NotifyAll();  // the queue may be empty now
}

void DiskQueue::WarnUnreadable(const std::string& what, bool& is_reported) const {
  if (std::exchange(is_reported, true)) return;
  LogWarning("remote.queue_read", what + "; the agent tries again each second, and later requests wait");
}

void DiskQueue::NoteReadable(bool& is_reported) const {
  if (std::exchange(is_reported, false)) LogInfo("remote.queue_read", "the disk queue can be read again");
}

// False: the request was dropped meanwhile.
bool DiskQueue::GiveBack(const Claim& claim) {
  if (!files_.contains(claim.file_number)) return false;
  window_[claim.id].is_claimed = false;
  return true;
}

bool DiskQueue::StillWanted(const Claim& claim) {
  const MutexLock lock(mutex_);
  DropExpired();
  return files_.contains(claim.file_number) && !IsExpired(claim.record.timestamp_ms);
}

void DiskQueue::Finish(const Claim& claim, Outcome outcome, std::optional<uint32_t> dropped) {
  const MutexLock lock(mutex_);
  const auto entry = window_.find(claim.id);
  if (entry == window_.end()) return;
  if (outcome == Outcome::kDropped) {
    dropped_samples_[IsExpired(claim.record.timestamp_ms) ? "queue_age" : "queue_bytes"] +=
        dropped.value_or(claim.record.samples);
  } else if (outcome == Outcome::kDamaged) {
    dropped_samples_["corrupt"] += claim.record.samples;
  }
  entry->second.file->MarkDone(claim.record);
  Step("record done");
  window_.erase(entry);
  if (const auto file = files_.find(claim.file_number); file != files_.end()) file->second.pending.Remove(claim.record);
  RemoveDone();
  if (NothingPending()) reported_drops_.clear();
  changed_.NotifyAll();
}

}  // namespace persia::agent
