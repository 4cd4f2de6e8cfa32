// Sends the requests of a disk queue to one target, one after another, and the metadata of families between them.
//
// A request is sent until the target accepts it, with exponential backoff, for as long as the queue keeps it. If the target
// answers with Retry-After, nothing is sent until then. A request is dropped only after an answer to this request that no later
// attempt can change: 400, 409, 413, 422. After a 413 its halves are sent first, down to a single series. All other answers may
// change without the request (a token, a path, a certificate), so that the request and those behind it wait, in order.
//
// Metadata are sent when the target has accepted all samples of the queue, so that they delay no sample of a backlog.
//
// Thread safety: Start and Finish from one thread, all other methods from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "base/timing.h"
#include "model/remote_write_counts.h"
#include "model/snapshot.h"
#include "net/http_client.h"
#include "remote/disk_queue.h"
#include "remote/endpoint.h"
#include "remote/metadata_sender.h"

namespace persia::agent {

class QueueSender {
 public:
  struct Options {
    Endpoint endpoint;
    DiskQueue* queue = nullptr;
    // Whether the target takes native histograms. If not, a request of earlier settings with them is dropped when the target
    // names them in its refusal.
    bool takes_native = false;
  };

  explicit QueueSender(Options options);
  ~QueueSender();
  QueueSender(const QueueSender&) = delete;
  QueueSender& operator=(const QueueSender&) = delete;

  // Throws std::system_error if no thread can be started.
  void Start();
  // The families of the newest collection.
  void OfferMetadata(std::shared_ptr<const Layout> layout) { metadata_.Offer(std::move(layout)); }
  // Ends the current backoff, and returns when all is sent, also metadata that have changed, or at `deadline`. The next agent
  // sends what is left.
  void Finish(std::chrono::steady_clock::time_point deadline);
  // Stops the queue, and ends the request in flight.
  void Stop();

  // Without the queue's numbers.
  [[nodiscard]] RemoteWriteCounts counts() const;

 private:
  enum class Verdict : uint8_t { kAccepted, kRefused, kAgain, kTooLarge };
  // Of a request: all of it, or what is left of it after a 413.
  struct Piece {
    std::string body;
    uint32_t samples;
  };

  void Run();
  bool Send(DiskQueue::Request request);
  bool WaitForAttempt();
  Result<HttpResponse> Post(std::string_view body, bool is_retry);
  Verdict Judge(const Result<HttpResponse>& response, uint32_t samples, const QueueRecord& record);
  void Halve(std::vector<Piece>& pieces);
  void LogRecovery(uint32_t accepted);

  const Options options_;
  HttpClient client_;
  MetadataSender metadata_;
  std::thread thread_;
  // Of the thread.
  Backoff backoff_;
  bool is_accepting_ = false;  // the last answer
  bool is_halving_logged_ = false;

  mutable Mutex mutex_;
  CondVar changed_;
  RemoteWriteCounts counts_ PERSIA_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point next_attempt_ PERSIA_GUARDED_BY(mutex_){};  // by the backoff
  std::chrono::steady_clock::time_point not_before_ PERSIA_GUARDED_BY(mutex_){};    // by Retry-After
  bool has_ended_ PERSIA_GUARDED_BY(mutex_) = false;                                // the thread
  bool stopped_ PERSIA_GUARDED_BY(mutex_) = false;
  bool is_failing_ PERSIA_GUARDED_BY(mutex_) = false;
  uint64_t refused_in_failure_ PERSIA_GUARDED_BY(mutex_) = 0;  // samples, since the last request that was accepted
  // One line for each change: accepted, an answer, another answer, no answer.
  StateLog log_;
};

}  // namespace persia::agent
