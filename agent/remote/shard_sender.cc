#include "remote/shard_sender.h"

#include <algorithm>

#include "net/refused.h"

namespace persia::agent {

using std::chrono::milliseconds;

ShardSender::ShardSender(Options options)
    : options_(std::move(options)), client_(options_.http), jitter_(std::random_device()()) {}

void ShardSender::Run() {
  while (const auto claim = options_.queue->Next()) {
    const WriteQueue::Outcome outcome = Send(*claim);
    if (options_.progress->stopped() && outcome == WriteQueue::Outcome::kDropped) return;  // who comes later sends it
    options_.queue->Finish(*claim, outcome);
  }
}

WriteQueue::Outcome ShardSender::Send(const WriteQueue::Claim& claim) {
  HttpRequest request{.method = "POST", .url = options_.url, .headers = options_.headers, .body = claim.body};
  request.headers.emplace_back("Content-Type", "application/x-protobuf");
  request.headers.emplace_back("Content-Encoding", "snappy");
  request.headers.emplace_back("X-Prometheus-Remote-Write-Version", "0.1.0");
  milliseconds pause = options_.first_pause;
  for (bool again = false;; again = true) {
    // At first for as long as the target asked to be left alone, whichever shard it told.
    const auto when = std::chrono::steady_clock::now() + (again ? Jittered(pause) : milliseconds(0));
    if (!options_.progress->WaitUntil(when) || !options_.queue->StillWanted(claim)) return WriteQueue::Outcome::kDropped;
    if (again) pause = std::min(2 * pause, options_.longest_pause);
    options_.progress->Try(claim.body.size(), again);
    const Result<HttpResponse> response = client_.Send(request);
    auto not_before = SendProgress::TimePoint{};
    std::string error;
    if (!response.ok()) {
      error = response.error();
    } else if (const int status = response.value().status; status >= 200 && status < 300) {
      options_.progress->Sent(claim.record);
      return WriteQueue::Outcome::kSent;
    } else {
      error = "status " + std::to_string(status) + ": " + QuotedBody(response.value().body, options_.max_quoted_bytes);
      if (!MayPassLater(status)) {
        options_.progress->Refused(claim.record, error);
        return WriteQueue::Outcome::kRefused;
      }
      if (response.value().retry_after) {
        not_before = std::chrono::steady_clock::now() + std::min(*response.value().retry_after, options_.longest_retry_after);
      }
    }
    options_.progress->Failed(error, not_before);
  }
}

milliseconds ShardSender::Jittered(milliseconds pause) {
  return milliseconds(std::uniform_int_distribution<milliseconds::rep>(pause.count() / 2, pause.count())(jitter_));
}

}  // namespace persia::agent
