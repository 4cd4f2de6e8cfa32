// Sends snapshots to one target by Prometheus' remote write 1.0, through a queue on disk.
//
// A thread of its own lays a snapshot out as requests and appends them to the queue; one thread a shard sends what is in it. So
// neither the collector nor the push to a gateway ever waits for a target, and a target that is away costs disk and not memory.
// What was appended arrives at least once: after a kill what was under way is sent again, byte for byte.
//
// Thread safety: Offer, Interrupt, stats from any thread; Finish from one.
//
//   auto target = RemoteWrite::Open({.name = "victoria", .url = "http://127.0.0.1:8428/api/v1/write", ...});
//   target.value()->Offer(snapshot);
//   target.value()->Finish(last, 10s, RemoteWrite::Ending::kGoesOn);
#pragma once

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
#include <thread>
#include <utility>
#include <vector>

#include "model/result.h"
#include "model/snapshot.h"
#include "remote/active_series.h"
#include "remote/relabel.h"
#include "remote/send_progress.h"
#include "remote/shard_sender.h"
#include "remote/snapshot_writer.h"
#include "remote/write_queue.h"

namespace persia::agent {

class RemoteWrite {
 public:
  struct Options {
    std::string name;  // of the target, in logs and as a label
    std::string url;
    std::vector<std::pair<std::string, std::string>> headers{};
    HttpClient::Options http{};
    std::vector<RelabelConfig> relabel{};
    uint32_t max_shards = 4;
    uint32_t max_samples = 10'000;  // of a request
    // No oftener than that, roughly; 0: each snapshot.
    std::chrono::milliseconds send_interval{0};
    // Where what outlives the agent is kept: the directory `<file_name>.queue`, and the file `<file_name>.series`.
    int directory_fd = -1;  // stays open as long as this lives
    std::string directory;
    std::string file_name;
    mode_t mode = 0600;
    uint64_t queue_max_bytes = 256 << 20;
    std::chrono::milliseconds queue_max_age = std::chrono::hours(24);
    WriteQueue::Log log{};
    // For tests.
    std::chrono::milliseconds first_pause{100};
    std::chrono::milliseconds longest_pause{5000};
    size_t series_per_shard = 50'000;
    std::function<void(size_t number)> thread_begins = [](size_t) {};  // before each
  };

  // What becomes of the series at the end: they go on with the next agent, or they end with the job.
  enum class Ending : uint8_t { kGoesOn, kEnds };

  struct Stats {
    SendProgress::Counts sending;
    uint64_t pending_samples = 0;
    uint64_t pending_bytes = 0;
    uint64_t file_bytes = 0;
    std::optional<int64_t> oldest_pending_ms{};
    std::map<std::string, uint64_t> dropped_samples{};  // by reason
    uint64_t corrupt_places = 0;
    uint32_t shards = 0;
    uint64_t series = 0;
    uint64_t snapshots = 0;  // that are in the queue, or have been
  };

  // An error: it has no queue, or the machine no threads for it; later there may be. With fewer threads than shards it goes on,
  // and the log says so.
  static Result<std::unique_ptr<RemoteWrite>> Open(Options options);
  // Ends at once; what waits is sent by the next agent.
  ~RemoteWrite();
  RemoteWrite(const RemoteWrite&) = delete;
  RemoteWrite& operator=(const RemoteWrite&) = delete;

  // Takes it, and returns; a snapshot that comes while two are waiting is dropped, and counted.
  void Offer(std::shared_ptr<const Snapshot> snapshot);
  // Writes the last snapshot (null: there is none), and sends what waits within the limit. An error says how much is left for
  // the next agent.
  Status Finish(std::shared_ptr<const Snapshot> last, std::chrono::milliseconds limit, Ending ending);
  // Ends Finish: nobody wants to wait any longer.
  void Interrupt();
  // As of the last snapshot that was written, but for what was sent.
  Stats stats();
  [[nodiscard]] const std::string& name() const { return options_.name; }
  // How many samples a snapshot has for a target, as far as that is known without relabelling.
  static uint64_t SamplesOf(const Snapshot& snapshot);
  // Whether the last request failed.
  [[nodiscard]] bool Failing() const { return !progress_.counts().last_error.empty(); }

 private:
  RemoteWrite(Options options, RelabelRules rules, std::unique_ptr<WriteQueue> queue);
  Status StartThreads();
  void WriteSnapshots();
  void StopSending();
  void NoteQueue();

  const Options options_;
  const std::unique_ptr<WriteQueue> queue_;
  SendProgress progress_;
  ActiveSeries active_;
  SnapshotWriter writer_;  // of the writing thread
  std::vector<std::unique_ptr<ShardSender>> senders_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<std::shared_ptr<const Snapshot>> waiting_;
  bool finishing_ = false;  // the writing thread ends when nothing is waiting
  Ending ending_ = Ending::kGoesOn;
  std::optional<std::chrono::system_clock::time_point> last_taken_;
  uint64_t dropped_behind_ = 0;
  WriteQueue::Stats queue_stats_;

  std::thread writing_;
  std::vector<std::thread> sending_;
};

}  // namespace persia::agent
