// Sends snapshots to one target by Prometheus' remote write 1.0, through a disk queue.
//
// One thread encodes snapshots as requests and appends them to the queue; another one sends them. So the collector and the
// pushes to gateways never wait for a target, and an outage of the target uses disk space, not memory. A request in the queue
// arrives at least once: after a kill, the request that was in flight is sent again, byte for byte.
//
// Thread safety: Offer, Interrupt, stats from any thread; Finish from one.
//
//   auto target = RemoteWrite::Open({.endpoint = {.name = "victoria", .url = "http://127.0.0.1:8428/api/v1/write"}, ...});
//   target.value()->Offer(snapshot);
//   target.value()->Finish(last, 10s, RemoteWrite::Ending::kGoesOn);
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "model/remote_write_counts.h"
#include "model/snapshot.h"
#include "remote/active_series.h"
#include "remote/disk_queue.h"
#include "remote/endpoint.h"
#include "remote/queue_sender.h"
#include "remote/relabel.h"
#include "remote/snapshot_writer.h"

namespace persia::agent {

class RemoteWrite {
 public:
  struct Options {
    Endpoint endpoint;
    std::vector<RelabelConfig> relabel{};
    bool sends_native = false;      // native histograms as such
    uint32_t max_samples = 10'000;  // of a request
    // Snapshots that come earlier after the last one are skipped; 0: none is.
    std::chrono::milliseconds send_interval{0};
    // Where state is kept: the directory `<file_name>.queue`, and the file `<file_name>.series`.
    int directory_fd = -1;  // stays open as long as this lives
    std::string directory;
    std::string file_name;
    mode_t mode = 0600;
    uint64_t queue_max_bytes = 256 << 20;
    std::chrono::milliseconds queue_max_age = std::chrono::hours(24);
    std::function<void(std::string_view step)> after_step{};  // of the queue, for tests
  };

  // At the end, the series continue with the next agent, or end with the job.
  enum class Ending : uint8_t { kGoesOn, kEnds };

  // An error: the queue or the threads cannot be created now.
  static Result<std::unique_ptr<RemoteWrite>> Open(Options options);
  // Ends immediately; the next agent sends the waiting requests.
  ~RemoteWrite();
  RemoteWrite(const RemoteWrite&) = delete;
  RemoteWrite& operator=(const RemoteWrite&) = delete;

  // Does not block. While two snapshots wait, further ones are dropped and counted.
  void Offer(std::shared_ptr<const Snapshot> snapshot);
  // Writes the last snapshot (null: none), and sends waiting requests within the limit. The error says how many samples are
  // left for the next agent.
  Status Finish(std::shared_ptr<const Snapshot> last, std::chrono::milliseconds limit, Ending ending);
  // Ends the wait in Finish.
  void Interrupt();
  // The queue's numbers are those before the last snapshot was offered. Further reasons of dropped samples: "behind",
  // "duplicate", "ends".
  RemoteWriteCounts stats();
  // How many were written to the queue.
  [[nodiscard]] uint64_t snapshots() const { return writer_.snapshots(); }
  [[nodiscard]] const std::string& name() const { return options_.endpoint.name; }
  // How many samples a snapshot has, before relabelling.
  static uint64_t SamplesOf(const Snapshot& snapshot);
  // Whether the last request failed.
  [[nodiscard]] bool Failing() const { return !sender_.counts().last_error.empty(); }

 private:
  RemoteWrite(Options options, RelabelRules rules, std::unique_ptr<DiskQueue> queue);
  void WriteSnapshots();
  void UpdateQueueStats();
  // Waits for an offer. False: the end. Null: the offer was skipped.
  bool NextSnapshot(std::shared_ptr<const Snapshot>& snapshot);

  const Options options_;
  const std::unique_ptr<DiskQueue> queue_;
  ActiveSeries active_;
  SnapshotWriter writer_;  // of the writing thread, and of Finish after it
  QueueSender sender_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<const Snapshot>> waiting_ PERSIA_GUARDED_BY(mutex_);
  bool was_skipped_ PERSIA_GUARDED_BY(mutex_) = false;  // an offer; the queue's numbers change nevertheless
  bool finishing_ PERSIA_GUARDED_BY(mutex_) = false;    // the writing thread ends when nothing waits
  std::optional<std::chrono::system_clock::time_point> last_taken_ PERSIA_GUARDED_BY(mutex_);
  uint64_t dropped_behind_ PERSIA_GUARDED_BY(mutex_) = 0;
  RemoteWriteCounts queue_stats_ PERSIA_GUARDED_BY(mutex_);

  std::thread writing_;
};

}  // namespace persia::agent
