#include "remote/metadata_sender.h"

#include <utility>

#include "base/thread.h"
#include "remote/write_request.h"

namespace persia::agent {

using std::chrono::steady_clock;

void MetadataSender::Start() {
  thread_ = StartThread("rw meta " + options_.endpoint.name, [this] { Run(); });
  const MutexLock lock(mutex_);
  has_ended_ = false;
}

void MetadataSender::Offer(std::shared_ptr<const Layout> layout) {
  const bool accepts = options_.accepts_samples();
  const MutexLock lock(mutex_);
  newest_ = std::move(layout);
  // Collections come a little early or late.
  if (!accepts || steady_clock::now() < next_ - options_.interval / 10) return;
  is_due_ = true;
  changed_.NotifyAll();
}

void MetadataSender::Run() {
  while (const auto layout = Next()) Send(*layout);
  const MutexLock lock(mutex_);
  has_ended_ = true;
  changed_.NotifyAll();
}

// Null: the end.
std::shared_ptr<const Layout> MetadataSender::Next() {
  const MutexLock lock(mutex_);
  while (!is_due_ && !is_finishing_ && !stopped_) changed_.Wait(mutex_);
  if (stopped_ || !std::exchange(is_due_, false)) return nullptr;
  next_ = steady_clock::now() + options_.interval;
  return newest_;
}

void MetadataSender::Finish(bool sends_last, steady_clock::time_point deadline) {
  {
    const MutexLock lock(mutex_);
    is_due_ = sends_last && newest_ != nullptr;
    is_finishing_ = true;
    changed_.NotifyAll();
    while (sends_last && !has_ended_ && !stopped_ && steady_clock::now() < deadline) changed_.WaitUntil(mutex_, deadline);
  }
  Stop();
  if (thread_.joinable()) thread_.join();
}

void MetadataSender::Stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  client_.Interrupt();
}

void MetadataSender::Send(const Layout& layout) {
  std::vector<MetadataRequest> requests = EncodeMetadata(layout, options_.max_families);
  {
    const MutexLock lock(mutex_);
    if (is_finishing_ && requests == sent_) return;
  }
  for (const auto& [body, families] : requests) {
    std::string compressed;
    SnappyCompress(body, compressed);
    const Result<HttpResponse> response = client_.Send(WriteRequestTo(options_.endpoint, compressed));
    const int status = response.ok() ? response.value().status : 0;
    const bool accepted = status >= 200 && status < 300;
    {
      const MutexLock lock(mutex_);
      if (stopped_ && !response.ok()) return;  // by us
      (accepted ? counts_.sent : counts_.failed) += families;
    }
    if (!accepted) {
      log_.Bad(std::to_string(status), options_.endpoint.name + " does not accept metadata: " + RefusalOf(response) +
                                           "; types and help texts are sent again at the next interval");
      return;
    }
  }
  log_.Recovered(options_.endpoint.name + " accepts metadata again");
  sent_ = std::move(requests);
}

MetadataSender::Counts MetadataSender::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace persia::agent
