// The disk queue of one target: compressed requests in order, kept when the agent is killed at any instruction.
//
// Each request belongs to a shard, and of each shard only the oldest request is in flight. A series always has the same shard,
// so its samples are sent in order. When the assignment of series to shards changes, a new generation begins: none of its
// requests is sent before all of the former generation are.
//
// A request that was sent is marked as done in its file. A file with nothing left to send is removed, except the newest, whose
// records tell the last timestamp. If the queue exceeds its size or age, its oldest file is dropped. In memory it holds only
// the headers of the next few requests. A power cut may lose requests that the kernel had not written yet; a kill loses none.
//
// Thread safety: BeginGeneration, Append, Sync and Close from one thread at a time, all others from any.
//
//   auto queue = DiskQueue::Open({.directory_fd = fd, .directory = "/var/lib/persia/state", .name = "agent.remote.victoria"});
//   queue.value()->BeginGeneration();
//   queue.value()->Append({.shard = 0, .samples = 500, .timestamp_ms = now}, body);
//   while (auto claim = queue.value()->Next()) {      // in several threads
//     ... send claim->body; before each retry, check StillWanted
//     queue.value()->Finish(*claim, DiskQueue::Outcome::kSent);
//   }
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/owned_fd.h"
#include "base/result.h"
#include "remote/queue_file.h"

namespace persia::agent {

class DiskQueue {
 public:
  struct Options {
    int directory_fd = -1;  // stays open as long as the queue lives
    std::string directory;  // for messages
    std::string name;       // of the queue's own directory in `directory`, created if it does not exist
    mode_t mode = 0600;     // of files
    uint64_t max_bytes = 256 << 20;
    std::chrono::milliseconds max_age = std::chrono::hours(24);
    std::function<int64_t()> now_ms = [] {
      return std::chrono::system_clock::now().time_since_epoch() / std::chrono::milliseconds(1);
    };
    // A backlog of this size, or of the last two collections if they are larger, is written even if `free_bytes` is too small,
    // as long as the filesystem has space.
    uint64_t min_backlog_bytes = 1 << 20;
    // How many bytes the filesystem has for the queue; by default the free bytes by statfs, less a reserve for others.
    std::function<uint64_t()> free_bytes{};
    // Called after each step ("file created", "record written", "record done", "file removed"), for tests that end the process
    // there.
    std::function<void(std::string_view step)> after_step{};
  };

  // If an earlier time is this far beyond now, the clock was wrong: later timestamps need not exceed that time.
  static constexpr int64_t kMaxClockLeadMs = 3'600'000;

  // kSent: the target answered; it may have refused the request. kDropped: StillWanted returned false.
  enum class Outcome : uint8_t { kSent, kDropped, kDamaged };

  struct Claim {
    QueueRecord record{};
    std::string body{};
    // For the queue.
    uint64_t id = 0;
    uint64_t file_number = 0;
  };

  struct Stats {
    uint64_t pending_records = 0;
    uint64_t pending_samples = 0;
    uint64_t pending_bytes = 0;  // of bodies
    uint64_t file_bytes = 0;
    std::optional<int64_t> oldest_pending_ms{};
    std::map<std::string, uint64_t> dropped_samples{};  // "queue_bytes", "queue_age", "disk_full", "corrupt"
    uint64_t corrupt_places = 0;
  };

  // An error: the directory cannot be created or read. Damage in it is logged and skipped. A file that the system cannot read
  // now is read later, and the requests behind it wait.
  static Result<std::unique_ptr<DiskQueue>> Open(Options options);

  // The newest timestamp that was appended, also by a former agent, since the clock was last ahead; nothing if none is known.
  [[nodiscard]] std::optional<int64_t> last_timestamp_ms() const;
  [[nodiscard]] int64_t now_ms() const { return options_.now_ms(); }
  // From now on a series may have another shard. Called before the first Append, too.
  void BeginGeneration();
  // `record`: shard, samples, timestamp_ms. An error: it is not in the queue, and counted as dropped.
  Status Append(QueueRecord record, std::string_view body);

  // The requests so far are on disk when it returns, unless the disk fails.
  void Sync();

  // Waits for a request that may be sent; nothing after Stop. The request belongs to the caller until Finish.
  std::optional<Claim> Next();
  // False: it was dropped or has expired. Finish it without sending it again.
  bool StillWanted(const Claim& claim);
  // `dropped`: samples of the claim that the target has not answered, for kDropped. Nothing: all of them.
  void Finish(const Claim& claim, Outcome outcome, std::optional<uint32_t> dropped = {});
  // Next returns nothing from now on. A claim that is not finished is sent again after the next Open.
  void Stop();
  // Frees the disk space of requests that are done. Called at the end.
  void Close();
  // Waits until nothing is pending, `deadline` or Stop. Returns whether nothing is pending.
  bool WaitEmpty(std::chrono::steady_clock::time_point deadline);

  Stats stats();

 private:
  struct Pending {
    uint64_t records = 0;
    uint64_t samples = 0;
    uint64_t bytes = 0;

    void Add(const QueueRecord& record) {
      ++records;
      samples += record.samples;
      bytes += record.body_size;
    }
    void Remove(const QueueRecord& record) {
      --records;
      samples -= record.samples;
      bytes -= record.body_size;
    }
  };
  struct File {
    bool is_unread = false;             // of a former agent, and cannot be read now: the pending requests are not known
    std::shared_ptr<QueueFile> open{};  // null: not in use
    uint64_t bytes = 0;
    Pending pending{};
    int64_t newest_ms = 0;
  };
  struct Entry {
    Claim request;
    std::shared_ptr<QueueFile> file;
    bool is_claimed = false;
  };

  explicit DiskQueue(Options options);
  Status OpenDirectory() PERSIA_REQUIRES(mutex_);
  Status ReadDirectory() PERSIA_REQUIRES(mutex_);
  QueueFile::Found Scan(uint64_t number, File& file, std::string& why) PERSIA_REQUIRES(mutex_);
  void SetAside(uint64_t number, const std::string& why, uint64_t samples) PERSIA_REQUIRES(mutex_);
  void ReadLater(uint64_t number, File& file) PERSIA_REQUIRES(mutex_);

  Error Refuse(const char* reason, const QueueRecord& record, const std::string& why) PERSIA_REQUIRES(mutex_);
  Status CreateFile() PERSIA_REQUIRES(mutex_);
  void RemoveNewest() PERSIA_REQUIRES(mutex_);
  void RemoveDone() PERSIA_REQUIRES(mutex_);
  void DropExpired() PERSIA_REQUIRES(mutex_);
  void DropOldest(const char* reason) PERSIA_REQUIRES(mutex_);
  void Unlink(uint64_t number) PERSIA_REQUIRES(mutex_);
  void NoteTimestamp(int64_t timestamp_ms) PERSIA_REQUIRES(mutex_);
  void NoteCollection(int64_t timestamp_ms, uint64_t bytes) PERSIA_REQUIRES(mutex_);
  [[nodiscard]] bool FitsMinBacklog(uint64_t bytes) const PERSIA_REQUIRES(mutex_);
  [[nodiscard]] uint64_t FreeBytes() const PERSIA_REQUIRES(mutex_);
  [[nodiscard]] uint64_t FileBytes() const PERSIA_REQUIRES(mutex_);
  [[nodiscard]] bool NothingPending() const PERSIA_REQUIRES(mutex_);
  [[nodiscard]] bool IsExpired(int64_t timestamp_ms) const { return timestamp_ms < now_ms() - options_.max_age.count(); }

  std::optional<Claim> ClaimOldest(std::shared_ptr<QueueFile>& file);
  Entry* FirstFree() PERSIA_REQUIRES(mutex_);
  void FillWindow() PERSIA_REQUIRES(mutex_);
  File* FileAtCursor() PERSIA_REQUIRES(mutex_);
  void MoveCursorTo(uint64_t number) PERSIA_REQUIRES(mutex_);
  void LeaveFile(File& file) PERSIA_REQUIRES(mutex_);
  bool GiveBack(const Claim& claim) PERSIA_REQUIRES(mutex_);
  void WarnUnreadable(const std::string& what, bool& is_reported) const;
  void NoteReadable(bool& is_reported) const;

  [[nodiscard]] std::string path() const { return options_.directory + "/" + options_.name; }
  [[nodiscard]] QueueFile::Place PlaceOf(uint64_t number) const PERSIA_REQUIRES(mutex_);
  void CountDamage(const std::string& what) PERSIA_REQUIRES(mutex_);
  void Step(std::string_view step) const {
    if (options_.after_step) options_.after_step(step);
  }

  const Options options_;
  const uint64_t rotate_bytes_;

  mutable Mutex mutex_;
  CondVar changed_;
  OwnedFd directory_ PERSIA_GUARDED_BY(mutex_);
  std::map<uint64_t, File> files_ PERSIA_GUARDED_BY(mutex_);  // by number, so the oldest first
  bool appending_ PERSIA_GUARDED_BY(mutex_) = false;          // to the newest file; else that is a former agent's
  uint64_t next_number_ PERSIA_GUARDED_BY(mutex_) = 1;
  // The reader is in this file, or in the next that exists.
  uint64_t cursor_number_ PERSIA_GUARDED_BY(mutex_) = 0;
  uint64_t cursor_at_ PERSIA_GUARDED_BY(mutex_) = QueueFile::kFileHeaderBytes;
  std::map<uint64_t, Entry> window_
      PERSIA_GUARDED_BY(mutex_);  // pending requests before the cursor; by id, so the oldest first
  uint64_t next_id_ PERSIA_GUARDED_BY(mutex_) = 1;
  uint32_t generation_ PERSIA_GUARDED_BY(mutex_) = 0;
  std::optional<int64_t> last_timestamp_ms_ PERSIA_GUARDED_BY(mutex_);
  // The last collection, and how many bytes it and the one before have.
  int64_t collection_ms_ PERSIA_GUARDED_BY(mutex_) = 0;
  uint64_t collection_bytes_ PERSIA_GUARDED_BY(mutex_) = 0;
  uint64_t former_collection_bytes_ PERSIA_GUARDED_BY(mutex_) = 0;
  bool stopped_ PERSIA_GUARDED_BY(mutex_) = false;
  std::set<std::string> reported_drops_ PERSIA_GUARDED_BY(mutex_);  // reasons that were logged since the queue was empty
  // Each was logged, and still holds: requests are refused; the file at the cursor, or a request's body, cannot be read now.
  bool is_full_ PERSIA_GUARDED_BY(mutex_) = false;
  bool cursor_waits_ PERSIA_GUARDED_BY(mutex_) = false;
  bool body_waits_ PERSIA_GUARDED_BY(mutex_) = false;
  std::map<std::string, uint64_t> dropped_samples_ PERSIA_GUARDED_BY(mutex_);
  uint64_t corrupt_places_ PERSIA_GUARDED_BY(mutex_) = 0;
};

}  // namespace persia::agent
