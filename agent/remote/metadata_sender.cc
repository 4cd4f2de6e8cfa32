#include "remote/metadata_sender.h"

#include <string>
#include <utility>

namespace persia::agent {

using std::chrono::steady_clock;

void MetadataSender::Offer(std::shared_ptr<const Layout> layout) {
  const MutexLock lock(mutex_);
  newest_ = std::move(layout);
}

// None without families, and if nothing is to be sent.
std::vector<MetadataRequest> MetadataSender::Encode() const {
  std::shared_ptr<const Layout> layout;
  {
    const MutexLock lock(mutex_);
    layout = newest_;
  }
  if (endpoint_.metadata_interval.count() == 0 || layout == nullptr) return {};
  return EncodeMetadata(*layout, endpoint_.max_metadata);
}

void MetadataSender::SendIfDue(HttpClient& client) {
  // Collections come a little early or late.
  if (steady_clock::now() < next_ - endpoint_.metadata_interval / 10) return;
  std::vector<MetadataRequest> requests = Encode();
  if (requests.empty()) return;
  next_ = steady_clock::now() + endpoint_.metadata_interval;
  Send(std::move(requests), client);
}

void MetadataSender::SendChanged(HttpClient& client) {
  if (std::vector<MetadataRequest> requests = Encode(); requests != sent_) Send(std::move(requests), client);
}

void MetadataSender::Send(std::vector<MetadataRequest> requests, HttpClient& client) {
  for (const auto& [body, families] : requests) {
    std::string compressed;
    SnappyCompress(body, compressed);
    const Result<HttpResponse> response = client.Send(WriteRequestTo(endpoint_, compressed));
    if (client.interrupted() && !response.ok()) return;  // by us
    const int status = response.ok() ? response.value().status : 0;
    const bool accepted = status >= 200 && status < 300;
    {
      const MutexLock lock(mutex_);
      (accepted ? families_sent_ : families_failed_) += families;
    }
    if (!accepted) {
      log_.Bad(std::to_string(status), endpoint_.name + " does not accept metadata: " + RefusalOf(response) +
                                           "; types and help texts are sent again at the next interval");
      return;
    }
  }
  log_.Recovered(endpoint_.name + " accepts metadata again");
  sent_ = std::move(requests);
}

void MetadataSender::AddCountsTo(RemoteWriteCounts& counts) const {
  const MutexLock lock(mutex_);
  counts.metadata_sent += families_sent_;
  counts.metadata_failed += families_failed_;
}

}  // namespace persia::agent
