// Sends the requests of a disk queue to one target, with several threads. Each takes the next request, of any shard.
//
// A request is sent until the target accepts it, with exponential backoff, for as long as the queue keeps it. If the target
// answers with Retry-After, no thread sends until then. A request is dropped only after an answer to this request that no later
// attempt can change: 400, 409, 413, 422. After a 413 its halves are sent first, down to a single series. All other answers may
// change without the request (a token, a path, a certificate), so that the request and those behind it wait, in order.
//
// Thread safety: Start and Join from one thread, all other methods from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "base/duration_counts.h"
#include "base/log.h"
#include "base/mutex.h"
#include "net/http_client.h"
#include "remote/disk_queue.h"
#include "remote/endpoint.h"

namespace persia::agent {

class QueueSender {
 public:
  struct Options {
    Endpoint endpoint;
    uint32_t threads = 4;
    DiskQueue* queue = nullptr;
    // Whether the target takes native histograms. If not, those in requests of earlier settings are dropped when it
    // refuses such a request for good, or names native histograms in its answer.
    bool takes_native = false;
    // The backoff doubles from `min_backoff` to `max_backoff`, until a request is accepted; each wait is drawn from its upper
    // half.
    std::chrono::milliseconds min_backoff{100};
    std::chrono::milliseconds max_backoff{5000};
    std::function<void(size_t number)> before_thread = [](size_t) {};  // for tests; from 1 on
  };

  struct Counts {
    uint64_t samples_sent = 0;
    std::map<int, uint64_t> samples_refused{};  // by status; never sent again
    std::map<int, uint64_t> requests{};         // by status; 0: no answer
    DurationCounts request_durations{};
    uint64_t retries = 0;
    uint64_t bytes = 0;  // of bodies, of all requests
    int64_t highest_sent_ms = 0;
    std::string last_error{};  // of the last request; empty if it succeeded
  };

  // The statuses after which a request is dropped.
  static constexpr int kFinalStatuses[] = {400, 409, 413, 422};

  explicit QueueSender(Options options) : options_(std::move(options)), log_("remote.send") {}
  ~QueueSender() { Join(); }
  QueueSender(const QueueSender&) = delete;
  QueueSender& operator=(const QueueSender&) = delete;

  // Throws std::system_error if no thread can be started. One is enough; if there are fewer than configured, the log says so.
  void Start();
  [[nodiscard]] size_t threads() const { return workers_.size(); }
  // Ends the current backoff of all threads.
  void HurryUp();
  // Stops the queue, and ends requests in flight; the next agent sends them.
  void Stop();
  // Stops, and waits for the threads.
  void Join();

  [[nodiscard]] Counts counts() const;
  // Whether the target has accepted the last request.
  [[nodiscard]] bool Accepts() const;

 private:
  struct Worker {
    HttpClient client;
    Backoff backoff;
    std::chrono::steady_clock::time_point next_attempt{};  // later requests wait, too
    std::thread thread{};
  };

  enum class Verdict : uint8_t { kAccepted, kRefused, kAgain, kTooLarge };

  void Run(Worker& worker);
  // Sends a body with `left` of the claim's samples; afterwards `left` is how many the target has not answered. Nothing:
  // stopped.
  std::optional<DiskQueue::Outcome> Send(const DiskQueue::Claim& claim, std::string_view body, uint32_t& left, Worker& worker);
  std::optional<DiskQueue::Outcome> SendHalves(const DiskQueue::Claim& claim, std::string_view body, uint32_t& left,
                                               Worker& worker);
  bool WaitUntil(std::chrono::steady_clock::time_point when);
  Result<HttpResponse> Post(std::string_view body, bool is_retry, HttpClient& client);
  // Counts and logs the answer.
  Verdict Judge(const Result<HttpResponse>& response, uint32_t samples, int64_t timestamp_ms);
  void LogHalving(uint32_t samples);
  // If the target refuses this request for good, or refuses native histograms, and takes none by the settings: the compressed
  // body without them; they are counted as refused. Nothing if it has none.
  std::optional<std::string> DropNative(std::string_view body, const Result<HttpResponse>& response, uint32_t& left);
  void LogRecovery(uint32_t accepted);

  const Options options_;
  std::vector<std::unique_ptr<Worker>> workers_;

  mutable Mutex mutex_;
  CondVar changed_;
  Counts counts_ PERSIA_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point not_before_ PERSIA_GUARDED_BY(mutex_){};
  uint64_t hurries_ PERSIA_GUARDED_BY(mutex_) = 0;
  bool stopped_ PERSIA_GUARDED_BY(mutex_) = false;
  bool is_failing_ PERSIA_GUARDED_BY(mutex_) = false;
  bool is_halving_logged_ PERSIA_GUARDED_BY(mutex_) = false;
  uint64_t refused_in_failure_ PERSIA_GUARDED_BY(mutex_) = 0;  // samples, since the last request that was accepted
  // One line for each change: accepted, an answer, another answer, no answer.
  StateLog log_;
};

}  // namespace persia::agent
