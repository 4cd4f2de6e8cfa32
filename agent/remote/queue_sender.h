// Sends the requests of a disk queue to one target, with several threads. Each takes the next request, of any shard.
//
// After a transport error, 429 or 5xx, a request is sent again with exponential backoff, for as long as the queue keeps it. If
// the target answers with Retry-After, no thread sends until then. After any other answer but a 2xx, the request is dropped,
// since it would block all requests behind it.
//
// Thread safety: Start and Join from one thread, all other methods from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "net/http_client.h"
#include "remote/disk_queue.h"

namespace persia::agent {

class QueueSender {
 public:
  struct Options {
    std::string target;  // its name, for logs
    std::string url;
    std::vector<std::pair<std::string, std::string>> headers{};  // besides those of the protocol
    HttpClient::Options http{};
    uint32_t threads = 4;
    DiskQueue* queue = nullptr;
    // The backoff doubles from `min_backoff` to `max_backoff`; each wait is drawn from its upper half.
    std::chrono::milliseconds min_backoff{100};
    std::chrono::milliseconds max_backoff{5000};
    std::function<void(size_t number)> before_thread = [](size_t) {};  // for tests; from 1 on
  };

  struct Counts {
    uint64_t samples_sent = 0;
    uint64_t samples_refused = 0;  // never sent again
    uint64_t requests_refused = 0;
    uint64_t retries = 0;
    uint64_t bytes = 0;  // of bodies, of all requests
    int64_t highest_sent_ms = 0;
    std::string last_error{};  // of the last request; empty if it succeeded
  };

  explicit QueueSender(Options options) : options_(std::move(options)) {}
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

 private:
  struct Worker {
    HttpClient client;
    std::thread thread{};
  };

  void Run(HttpClient& client);
  std::optional<DiskQueue::Outcome> Send(const DiskQueue::Claim& claim, HttpClient& client);
  bool WaitUntil(std::chrono::steady_clock::time_point when);
  bool IsFinal(const Result<HttpResponse>& response, const QueueRecord& record);

  const Options options_;
  std::vector<std::unique_ptr<Worker>> workers_;

  mutable Mutex mutex_;
  CondVar changed_;
  Counts counts_ PERSIA_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point not_before_ PERSIA_GUARDED_BY(mutex_){};
  uint64_t hurries_ PERSIA_GUARDED_BY(mutex_) = 0;
  bool stopped_ PERSIA_GUARDED_BY(mutex_) = false;
  bool is_failing_ PERSIA_GUARDED_BY(mutex_) = false;                // and that was logged
  std::set<std::string> logged_refusals_ PERSIA_GUARDED_BY(mutex_);  // without their numbers
};

}  // namespace persia::agent
