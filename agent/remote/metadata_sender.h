// Sends the metadata of all families (type, help, unit) to a target, at an interval, in requests of their own.
//
// Metadata describe the present, so they are not queued: a request that fails is not repeated before the next interval.
//
// Thread safety: SendIfDue and SendChanged from one thread, all other methods from any.
//
//   MetadataSender metadata(endpoint);
//   metadata.Offer(snapshot->layout);   // at each collection
//   metadata.SendIfDue(client);         // when the target has nothing else to do
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "model/remote_write_counts.h"
#include "model/snapshot.h"
#include "net/http_client.h"
#include "remote/endpoint.h"
#include "remote/write_request.h"

namespace persia::agent {

class MetadataSender {
 public:
  // `endpoint` outlives the sender.
  explicit MetadataSender(const Endpoint& endpoint) : endpoint_(endpoint), log_("remote.metadata") {}

  // The newest families.
  void Offer(std::shared_ptr<const Layout> layout);
  // Sends them if the interval has passed.
  void SendIfDue(HttpClient& client);
  // Sends them if they have changed since the target accepted them.
  void SendChanged(HttpClient& client);

  void AddCountsTo(RemoteWriteCounts& counts) const;

 private:
  [[nodiscard]] std::vector<MetadataRequest> Encode() const;
  void Send(std::vector<MetadataRequest> requests, HttpClient& client);

  const Endpoint& endpoint_;
  std::vector<MetadataRequest> sent_;  // the last that the target accepted
  std::chrono::steady_clock::time_point next_{};
  StateLog log_;

  mutable Mutex mutex_;
  std::shared_ptr<const Layout> newest_ PERSIA_GUARDED_BY(mutex_);
  uint64_t families_sent_ PERSIA_GUARDED_BY(mutex_) = 0;
  uint64_t families_failed_ PERSIA_GUARDED_BY(mutex_) = 0;
};

}  // namespace persia::agent
