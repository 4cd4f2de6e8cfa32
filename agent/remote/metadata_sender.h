// Sends the metadata of all families (type, help, unit) to a target, at an interval, in requests of their own.
//
// Metadata describe the present, so they are not queued: a request that fails is not repeated before the next interval. They
// have their own thread and connection, and are sent only while the target accepts samples. So they delay no sample.
//
// Thread safety: Start, Finish from one thread; all other methods from any.
//
//   MetadataSender metadata({.endpoint = endpoint, .accepts_samples = [&] { return sender.Accepts(); }});
//   metadata.Start();
//   metadata.Offer(snapshot->layout);   // at each collection
//   metadata.Finish(true, deadline);
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "model/snapshot.h"
#include "net/http_client.h"
#include "remote/endpoint.h"
#include "remote/write_request.h"

namespace persia::agent {

class MetadataSender {
 public:
  struct Options {
    Endpoint endpoint;
    std::chrono::milliseconds interval{60'000};
    uint32_t max_families = 2000;  // of a request
    std::function<bool()> accepts_samples = [] { return true; };
  };
  // Totals of families.
  struct Counts {
    uint64_t sent = 0;
    uint64_t failed = 0;
  };

  explicit MetadataSender(Options options)
      : options_(std::move(options)), client_(ClientOptions(options_.endpoint)), log_("remote.metadata") {}
  ~MetadataSender() { Finish(false, {}); }
  MetadataSender(const MetadataSender&) = delete;
  MetadataSender& operator=(const MetadataSender&) = delete;

  // Throws std::system_error if the thread cannot be started; then nothing is sent.
  void Start();
  // Wakes the thread if the interval has passed and the target accepts samples.
  void Offer(std::shared_ptr<const Layout> layout);
  // With `sends_last`, sends what has changed since the last request. Returns at the deadline at the latest.
  void Finish(bool sends_last, std::chrono::steady_clock::time_point deadline);
  // Ends a request in flight; nothing is sent any more.
  void Stop();

  [[nodiscard]] Counts counts() const;

 private:
  void Run();
  std::shared_ptr<const Layout> Next();
  void Send(const Layout& layout);

  const Options options_;
  HttpClient client_;
  std::vector<MetadataRequest> sent_;  // the last that the target accepted; of the thread
  StateLog log_;
  std::thread thread_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<const Layout> newest_ PERSIA_GUARDED_BY(mutex_);
  bool is_due_ PERSIA_GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point next_ PERSIA_GUARDED_BY(mutex_){};
  bool is_finishing_ PERSIA_GUARDED_BY(mutex_) = false;
  bool has_ended_ PERSIA_GUARDED_BY(mutex_) = true;  // the thread
  bool stopped_ PERSIA_GUARDED_BY(mutex_) = false;
  Counts counts_ PERSIA_GUARDED_BY(mutex_);
};

}  // namespace persia::agent
