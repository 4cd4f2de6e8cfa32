// The disk queue of one target: compressed requests, first in, first out, kept when the agent is killed at any instruction.
//
// Each request is a file, whose name says all about it but its body. A file has its name once it is whole; when the request is
// done, it is removed. The newest stays, with another name, since it tells the last timestamp. If the queue exceeds its size or
// age, its oldest requests are dropped. A power cut may lose requests that the kernel had not written yet; a kill loses none.
//
// Thread safety: Append from one thread at a time; Next, StillWanted and Finish from one thread; all others from any.
//
//   auto queue = DiskQueue::Open({.directory_fd = fd, .directory = "/var/lib/persia/state", .name = "agent.remote.victoria"});
//   queue.value()->Append({.timestamp_ms = now, .samples = 500}, body);
//   while (auto request = queue.value()->Next()) {      // in another thread
//     ... send request->body; before each retry, check StillWanted
//     queue.value()->Finish();
//   }
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/owned_fd.h"
#include "base/result.h"
#include "files/durable_file.h"
#include "model/remote_write_counts.h"

namespace persia::agent {

// A request without its body.
struct QueueRecord {
  uint64_t number = 0;       // in the order of the queue
  int64_t timestamp_ms = 0;  // of all its samples, but for zeros where counts began
  uint32_t samples = 0;      // 0: it is done
  bool is_native = false;    // its samples are native histograms, else numbers
  uint64_t bytes = 0;        // that its file has on disk

  // "000000000012.1700000000000.500.queue"; of native histograms "000000000013.1700000000000.20.native.queue".
  [[nodiscard]] std::string FileName() const;
  // Nothing if it is no name of such a file.
  static std::optional<QueueRecord> OfFileName(std::string_view name);
};

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
    // Called after each step (those of ReplaceDurable, "request done"), for tests that end the process there.
    std::function<void(std::string_view step)> after_step{};
  };

  // If an earlier time is this far beyond now, the clock was wrong: later timestamps need not exceed that time.
  static constexpr int64_t kMaxClockLeadMs = 3'600'000;
  // The writer's requests have at most a few MiB.
  static constexpr uint64_t kMaxFileBytes = 24 << 20;

  // What a request survives once it is appended.
  enum class Durability : uint8_t { kKill, kPowerCut };

  struct Request {
    QueueRecord record{};
    std::string body{};
  };

  // An error: the directory cannot be created or read.
  static Result<std::unique_ptr<DiskQueue>> Open(Options options);

  // The newest timestamp that was appended, also by a former agent, since the clock was last ahead; nothing if none is known.
  [[nodiscard]] std::optional<int64_t> last_timestamp_ms() const;
  [[nodiscard]] int64_t now_ms() const { return options_.now_ms(); }
  // `record`: timestamp_ms, samples, is_native. An error: it is not in the queue, and counted as dropped.
  Status Append(QueueRecord record, std::string_view body, Durability durability = Durability::kKill);

  // Waits for a request, and returns the oldest. Nothing after Stop, or after EndWhenEmpty once nothing is pending. A damaged
  // file is skipped. While a file cannot be read for another reason, the requests behind it wait.
  // REQUIRES: Finish was called for the request before.
  std::optional<Request> Next();
  // False: the request of Next was dropped or has expired. Finish it without sending it again.
  bool StillWanted();
  // The request of Next needs no further attempt. `unanswered`: how many of its samples the target has not answered; they were
  // dropped.
  void Finish(uint32_t unanswered = 0);
  // Next returns nothing from now on. A request that is not finished is sent again after the next Open.
  void Stop();
  void EndWhenEmpty();

  // Whether nothing is pending.
  [[nodiscard]] bool empty() const;
  // Without the totals of the sender. Reasons of dropped samples: "queue_bytes", "queue_age", "disk_full", "corrupt".
  RemoteWriteCounts stats();

 private:
  explicit DiskQueue(Options options);
  Status OpenDirectory() PERSIA_REQUIRES(mutex_);
  Status ReadDirectory() PERSIA_REQUIRES(mutex_);

  void Insert(const QueueRecord& record) PERSIA_REQUIRES(mutex_);
  const QueueRecord* Oldest() PERSIA_REQUIRES(mutex_);
  void RemoveOldest() PERSIA_REQUIRES(mutex_);
  void DropOldest(const char* reason) PERSIA_REQUIRES(mutex_);
  Error Refuse(const char* reason, const QueueRecord& record, const std::string& why) PERSIA_REQUIRES(mutex_);
  std::optional<Request> ReadOldest(const QueueRecord& oldest) PERSIA_REQUIRES(mutex_);
  void NoteTimestamp(int64_t timestamp_ms) PERSIA_REQUIRES(mutex_);
  void NoteCollection(const QueueRecord& record) PERSIA_REQUIRES(mutex_);
  [[nodiscard]] uint64_t FreeBytes() const PERSIA_REQUIRES(mutex_);
  [[nodiscard]] bool IsExpired(int64_t timestamp_ms) const { return timestamp_ms < now_ms() - options_.max_age.count(); }

  [[nodiscard]] std::string path() const { return options_.directory + "/" + options_.name; }
  [[nodiscard]] DurableFile FileOf(const QueueRecord& record) const PERSIA_REQUIRES(mutex_);

  const Options options_;

  mutable Mutex mutex_;
  CondVar changed_;
  OwnedFd directory_ PERSIA_GUARDED_BY(mutex_);
  std::deque<QueueRecord> records_ PERSIA_GUARDED_BY(mutex_);
  std::optional<QueueRecord> taken_ PERSIA_GUARDED_BY(mutex_);  // by Next, and not finished; records_ may lack it
  uint64_t next_number_ PERSIA_GUARDED_BY(mutex_) = 1;
  std::optional<int64_t> last_timestamp_ms_ PERSIA_GUARDED_BY(mutex_);
  // The last collection, and how many bytes it and the one before have.
  int64_t collection_ms_ PERSIA_GUARDED_BY(mutex_) = 0;
  uint64_t collection_bytes_ PERSIA_GUARDED_BY(mutex_) = 0;
  uint64_t former_collection_bytes_ PERSIA_GUARDED_BY(mutex_) = 0;
  bool stopped_ PERSIA_GUARDED_BY(mutex_) = false;
  bool ends_when_empty_ PERSIA_GUARDED_BY(mutex_) = false;
  std::set<std::string> reported_drops_ PERSIA_GUARDED_BY(mutex_);  // reasons that were logged since the queue was empty
  // Each was logged, and still holds: requests are refused; the oldest request cannot be read now.
  bool is_full_ PERSIA_GUARDED_BY(mutex_) = false;
  bool is_unreadable_ PERSIA_GUARDED_BY(mutex_) = false;
  RemoteWriteCounts counts_ PERSIA_GUARDED_BY(mutex_);
};

}  // namespace persia::agent
