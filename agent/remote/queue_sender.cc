#include "remote/queue_sender.h"

#include <algorithm>
#include <iterator>
#include <system_error>

#include "base/backoff.h"
#include "base/text.h"
#include "base/thread.h"
#include "net/response_errors.h"
#include "remote/snappy_block.h"
#include "remote/write_request.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kMaxRetryAfter = std::chrono::hours(1);
constexpr size_t kMaxQuotedBytes = 500;

constexpr size_t kComparedBytes = 120;
constexpr int kTooLarge = 413;
// Uncompressed. The writer's requests have at most a few MiB.
constexpr size_t kMaxBodyBytes = 256 << 20;

// Times and counts differ from one answer to the next.
std::string WithoutNumbers(std::string text) {
  std::erase_if(text, IsDigit);
  return text.substr(0, kComparedBytes);
}

std::string ErrorOf(const Result<HttpResponse>& response) {
  if (!response.ok()) return response.error();
  const HttpResponse& answer = response.value();
  const std::string status = "status " + std::to_string(answer.status) + ": ";
  if (answer.redirects_to.empty()) return status + BodyExcerpt(answer.body, kMaxQuotedBytes);
  return status + "it redirects to " + answer.redirects_to + ", which is not followed; set the url to where it accepts samples";
}

}  // namespace

void QueueSender::Start() {
  try {
    while (workers_.size() < options_.threads) {
      options_.before_thread(workers_.size() + 1);
      std::unique_ptr<Worker> worker(new Worker{.client = HttpClient(options_.http)});
      worker->thread = StartThread("rw send " + options_.target, [this, &client = worker->client] { Run(client); });
      workers_.push_back(std::move(worker));
    }
  } catch (const std::system_error& error) {
    if (workers_.empty()) throw;
    LogWarning("remote.threads", "remote_write " + options_.target + ": cannot start a thread: " + error.what() + "; " +
                                     std::to_string(workers_.size()) + " of " + std::to_string(options_.threads) +
                                     " senders work");
  }
}

void QueueSender::Run(HttpClient& client) {
  while (const auto claim = options_.queue->Next()) {
    uint32_t left = claim->record.samples;
    if (const auto outcome = Send(*claim, claim->body, left, client)) options_.queue->Finish(*claim, *outcome, left);
  }
}

std::optional<DiskQueue::Outcome> QueueSender::Send(const DiskQueue::Claim& claim, std::string_view body, uint32_t& left,
                                                    HttpClient& client) {
  const uint32_t samples = left;
  Backoff backoff(options_.min_backoff, options_.max_backoff);
  for (bool is_retry = false;; is_retry = true) {
    const milliseconds wait = is_retry ? backoff.NextJittered() : milliseconds(0);
    if (!WaitUntil(steady_clock::now() + wait)) return std::nullopt;
    if (!options_.queue->StillWanted(claim)) return DiskQueue::Outcome::kDropped;
    switch (Judge(Post(body, is_retry, client), samples, claim.record.timestamp_ms)) {
      case Verdict::kDone:
        left = 0;
        return DiskQueue::Outcome::kSent;
      case Verdict::kTooLarge:
        return SendHalves(claim, body, left, client);
      case Verdict::kAgain:
        break;
    }
  }
}

// REQUIRES: more than one sample.
std::optional<DiskQueue::Outcome> QueueSender::SendHalves(const DiskQueue::Claim& claim, std::string_view body, uint32_t& left,
                                                          HttpClient& client) {
  const std::optional<std::string> plain = SnappyUncompress(body, kMaxBodyBytes);
  const std::optional<Halves> halves = plain ? Halve(*plain) : std::nullopt;
  if (!halves) {  // the body is not what the writer wrote
    const MutexLock lock(mutex_);
    counts_.samples_refused[kTooLarge] += left;
    return DiskQueue::Outcome::kSent;
  }
  for (const std::string_view half : {halves->first, halves->second}) {
    std::string compressed;
    SnappyCompress(half, compressed);
    uint32_t left_of_half = SeriesIn(half);
    left -= left_of_half;
    const auto outcome = Send(claim, compressed, left_of_half, client);
    left += left_of_half;
    if (outcome != DiskQueue::Outcome::kSent) return outcome;
  }
  return DiskQueue::Outcome::kSent;
}

Result<HttpResponse> QueueSender::Post(std::string_view body, bool is_retry, HttpClient& client) {
  HttpRequest request{.method = "POST", .url = options_.url, .headers = options_.headers, .body = body};
  request.headers.emplace_back("Content-Type", "application/x-protobuf");
  request.headers.emplace_back("Content-Encoding", "snappy");
  request.headers.emplace_back("X-Prometheus-Remote-Write-Version", "0.1.0");
  request.follow_redirects = true;
  const auto begin = steady_clock::now();
  Result<HttpResponse> response = client.Send(request);
  const MutexLock lock(mutex_);
  counts_.bytes += body.size();
  counts_.retries += is_retry ? 1 : 0;
  counts_.request_durations.Add(steady_clock::now() - begin);
  ++counts_.requests[response.ok() ? response.value().status : 0];
  return response;
}

// Waits until `when`, and for as long as the target asked for. False: stopped.
bool QueueSender::WaitUntil(steady_clock::time_point when) {
  const MutexLock lock(mutex_);
  const uint64_t hurries = hurries_;
  for (;;) {
    const auto until = std::max(hurries == hurries_ ? when : steady_clock::time_point{}, not_before_);
    if (stopped_ || until <= steady_clock::now()) return !stopped_;
    changed_.WaitUntil(mutex_, until);
  }
}

QueueSender::Verdict QueueSender::Judge(const Result<HttpResponse>& response, uint32_t samples, int64_t timestamp_ms) {
  const int status = response.ok() ? response.value().status : 0;
  if (status >= 200 && status < 300) {
    {
      const MutexLock lock(mutex_);
      counts_.samples_sent += samples;
      counts_.highest_sent_ms = std::max(counts_.highest_sent_ms, timestamp_ms);
      counts_.last_error.clear();
      if (!is_failing_) return Verdict::kDone;
    }
    LogRecovery(samples);
    return Verdict::kDone;
  }
  if (status == kTooLarge && samples > 1) return Verdict::kTooLarge;
  const std::string error = ErrorOf(response);
  const bool is_final = std::ranges::find(kFinalStatuses, status) != std::end(kFinalStatuses);
  {
    const MutexLock lock(mutex_);
    if (stopped_ && !response.ok()) return Verdict::kAgain;  // by us
    counts_.last_error = error;
    is_failing_ = true;
    if (is_final) {
      counts_.samples_refused[status] += samples;
      refused_in_failure_ += samples;
    } else if (response.ok() && response.value().retry_after) {
      not_before_ = std::max(not_before_, steady_clock::now() + std::min(*response.value().retry_after, kMaxRetryAfter));
    }
  }
  const std::string kind = response.ok() ? "status " + std::to_string(status) : WithoutNumbers(error);
  if (is_final) {
    log_.Bad(kind, options_.target + " refuses " + std::to_string(samples) + " samples, which are dropped: " + error);
    return Verdict::kDone;
  }
  log_.Bad(kind, "cannot send to " + options_.target + ": " + error + "; samples wait in the disk queue");
  return Verdict::kAgain;
}

// `accepted`: samples that are still pending in the queue.
void QueueSender::LogRecovery(uint32_t accepted) {
  const uint64_t pending = options_.queue->stats().pending_samples;
  uint64_t refused = 0;
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(is_failing_, false)) return;
    refused = std::exchange(refused_in_failure_, 0);
  }
  log_.Recovered(options_.target + " accepts samples again; " +
                 std::to_string(pending - std::min<uint64_t>(pending, accepted)) + " wait" +
                 (refused > 0 ? ", " + std::to_string(refused) + " were refused" : ""));
}

void QueueSender::HurryUp() {
  const MutexLock lock(mutex_);
  ++hurries_;
  changed_.NotifyAll();
}

void QueueSender::Stop() {
  options_.queue->Stop();
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  for (const auto& worker : workers_) worker->client.Interrupt();
}

void QueueSender::Join() {
  Stop();
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

QueueSender::Counts QueueSender::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace persia::agent
