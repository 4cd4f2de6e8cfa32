// What waits for a target, on disk: compressed requests, in order, kept over a SIGKILL of the agent at whatever instruction.
//
// Each request belongs to a shard; of a shard one is under way at a time, the oldest. So a series, which always has the same
// shard, is sent in order. Whoever changes how series are spread over shards begins a new generation, of which nothing is sent
// before all of the former ones is. What is sent is marked so in its file; a file of which all is sent is removed, but for the
// newest, which remembers the last timestamp.
//
// Bounded in bytes and in age: the oldest file is dropped as a whole. A queue takes no memory but for the headers of the next
// few requests. A power cut may cost what the kernel had not written yet; a kill costs nothing.
//
// Thread safety: Append and BeginGeneration from one thread, all others from any.
//
//   auto queue = WriteQueue::Open({.directory_fd = fd, .directory = "/var/lib/persia/state", .name = "agent.remote.victoria"});
//   queue.value()->BeginGeneration();
//   queue.value()->Append({.shard = 0, .samples = 500, .timestamp_ms = now}, body);
//   while (auto claim = queue.value()->Next()) {      // in a thread for each shard
//     ... send claim->body; before each repetition ask StillWanted
//     queue.value()->Finish(*claim, WriteQueue::Outcome::kSent);
//   }
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "model/result.h"
#include "remote/queue_segment.h"

namespace persia::agent {

class WriteQueue {
 public:
  // Each is called with a sentence. From any thread.
  struct Log {
    std::function<void(std::string_view event, const std::string& message)> note = [](auto, const auto&) {};
    std::function<void(std::string_view event, const std::string& message)> warn = [](auto, const auto&) {};
  };

  struct Options {
    int directory_fd = -1;  // stays open as long as the queue lives
    std::string directory;  // for messages
    std::string name;       // of the directory in it that is the queue's own, made if it is not there
    mode_t mode = 0600;     // of files
    uint64_t max_bytes = 256 << 20;
    std::chrono::milliseconds max_age = std::chrono::hours(24);
    std::function<int64_t()> now_ms{};  // by default the system's clock
    // So much is a backlog to nobody, nor is what was collected in the last two ticks, if that is more: it is written whatever
    // the room is, as long as the filesystem takes it.
    uint64_t little_bytes = 1 << 20;
    // How many bytes there is room for, beside what must stay free; by default as the filesystem says.
    std::function<uint64_t()> room{};
    Log log{};
    // Called after each step ("segment made", "record written", "record done", "segment removed"), for tests that end the
    // process there.
    std::function<void(std::string_view step)> after_step{};
  };

  // A time so far beyond now was given by a clock that was ahead: what comes after need not be later.
  static constexpr int64_t kMostAheadMs = 3'600'000;

  enum class Outcome : uint8_t { kSent, kRefused, kDropped };

  struct Claim {
    QueueRecord record{};
    std::string body{};
    uint64_t id = 0;
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

  // An error: there is no directory to be had. What is damaged in it is said to the log, and the rest goes on. A file that the
  // system cannot read now is read later, and what is behind it waits.
  static Result<std::unique_ptr<WriteQueue>> Open(Options options);
  ~WriteQueue();
  WriteQueue(const WriteQueue&) = delete;
  WriteQueue& operator=(const WriteQueue&) = delete;

  // The newest timestamp that was appended, whoever did, since the clock was last ahead; nothing if none is known.
  [[nodiscard]] std::optional<int64_t> last_timestamp_ms() const;
  // By the clock of its options.
  [[nodiscard]] int64_t now_ms() const { return options_.now_ms(); }
  // Series may have other shards from now on. Called before the first Append, too.
  void BeginGeneration();
  // `record`: shard, samples, timestamp_ms; one that is far before the last begins anew. An error: it is not there, and counted
  // as dropped.
  Status Append(QueueRecord record, std::string_view body);

  // Waits for the next one that may be sent, also while the system cannot read it; nothing after Stop. It is the caller's until
  // Finish.
  std::optional<Claim> Next();
  // False: it was dropped, or is too old now; Finish it without sending it again.
  bool StillWanted(const Claim& claim);
  void Finish(const Claim& claim, Outcome outcome);
  // Next returns nothing from now on. What is claimed and not finished is sent by who opens the queue later.
  void Stop();
  // What is done leaves its disk space. Called at the end.
  void Close();
  // Until nothing is pending, or the time is over, or Stop: whether nothing is.
  bool WaitEmpty(std::chrono::steady_clock::time_point deadline);

  Stats stats();

 private:
  struct Segment {
    uint64_t number = 0;
    bool unread = false;  // an agent before this one has left it, and it cannot be read now: what is pending is not known
    std::shared_ptr<QueueSegment> file{};  // null: not open, since nobody reads it now
    uint64_t bytes = 0;
    uint64_t pending_records = 0;
    uint64_t pending_samples = 0;
    uint64_t pending_bytes = 0;
    int64_t newest_ms = 0;
  };
  struct Entry {
    uint64_t id = 0;
    uint64_t segment = 0;
    std::shared_ptr<QueueSegment> file{};
    QueueRecord record{};
    bool claimed = false;
    bool dropped = false;
  };

  explicit WriteQueue(Options options);
  Status OpenDirectory();
  Status ReadDirectory();
  QueueSegment::Found Scan(Segment& segment, std::string& why);
  void ReadLater(Segment& segment);
  [[nodiscard]] uint64_t SamplesWithoutHeader(uint64_t number) const;
  Status MakeSegment();
  void FillWindow();
  bool OpenAtCursor();
  void NotNow(const std::string& what, bool& told);
  void ReadAgain(bool& told);
  void MoveCursorTo(uint64_t segment) {
    cursor_segment_ = segment;
    cursor_at_ = QueueSegment::kFileHeaderBytes;
  }
  Entry* FirstFree();
  bool GiveBack(const Claim& claim);
  void RemoveNewest();
  void RemoveDone();
  void DropOld();
  void Drop(size_t segment, const char* reason);
  void LeaveSegment(Segment& segment);
  void NoteTimestamp(int64_t timestamp_ms);
  void NoteTick(int64_t timestamp_ms, uint64_t bytes);
  [[nodiscard]] bool IsLittle(uint64_t bytes) const;
  [[nodiscard]] bool TooOld(int64_t timestamp_ms) const;
  [[nodiscard]] uint64_t FileBytes() const;
  [[nodiscard]] uint64_t Pending() const;
  [[nodiscard]] uint64_t Room() const;
  void Remove(const Segment& segment);
  [[nodiscard]] QueueSegment::Place PlaceOf(uint64_t number) const;
  void Count(const char* reason, uint64_t samples) { dropped_samples_[reason] += samples; }
  void CountCorrupt(const std::string& what);
  void Step(std::string_view step) const {
    if (options_.after_step) options_.after_step(step);
  }

  const Options options_;
  const uint64_t segment_bytes_;
  int fd_ = -1;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<Segment> segments_;  // oldest first
  bool appending_ = false;        // the last of them is ours to append to
  uint64_t next_number_ = 1;
  uint64_t cursor_segment_ = 0;  // the reader is in this one, or in the next that is there
  uint64_t cursor_at_ = QueueSegment::kFileHeaderBytes;
  std::deque<Entry> window_;  // pending ones before the cursor, oldest first
  uint64_t next_id_ = 1;
  uint32_t generation_ = 0;
  std::optional<int64_t> last_timestamp_ms_;
  int64_t tick_ms_ = 0;  // the timestamp that Append was given last, and how many bytes with it and with the one before
  uint64_t tick_bytes_ = 0;
  uint64_t former_tick_bytes_ = 0;
  bool stopped_ = false;
  bool full_ = false;           // and that was said
  bool cursor_waits_ = false;   // what is there cannot be read now, and that was said
  bool request_waits_ = false;  // the same of one in the window
  std::map<std::string, uint64_t> dropped_samples_;
  uint64_t corrupt_places_ = 0;
};

}  // namespace persia::agent
