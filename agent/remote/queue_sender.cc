#include "remote/queue_sender.h"

#include <algorithm>
#include <system_error>

#include "base/backoff.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "net/response_errors.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kMaxRetryAfter = std::chrono::hours(1);
constexpr size_t kMaxQuotedBytes = 500;

// How many different refusals are logged, and how much of each is compared.
constexpr size_t kMaxLoggedRefusals = 32;
constexpr size_t kComparedBytes = 120;

// Times and counts differ from one refusal to the next.
std::string WithoutNumbers(std::string text) {
  std::erase_if(text, IsDigit);
  return text.substr(0, kComparedBytes);
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
    if (const auto outcome = Send(*claim, client)) options_.queue->Finish(*claim, *outcome);
  }
}

// Nothing: stopped before the target answered.
std::optional<DiskQueue::Outcome> QueueSender::Send(const DiskQueue::Claim& claim, HttpClient& client) {
  HttpRequest request{.method = "POST", .url = options_.url, .headers = options_.headers, .body = claim.body};
  request.headers.emplace_back("Content-Type", "application/x-protobuf");
  request.headers.emplace_back("Content-Encoding", "snappy");
  request.headers.emplace_back("X-Prometheus-Remote-Write-Version", "0.1.0");
  Backoff backoff(options_.min_backoff, options_.max_backoff);
  for (bool is_retry = false;; is_retry = true) {
    const milliseconds wait = is_retry ? backoff.NextJittered() : milliseconds(0);
    if (!WaitUntil(steady_clock::now() + wait)) return std::nullopt;
    if (!options_.queue->StillWanted(claim)) return DiskQueue::Outcome::kDropped;
    {
      const MutexLock lock(mutex_);
      counts_.bytes += claim.body.size();
      counts_.retries += is_retry ? 1 : 0;
    }
    if (IsFinal(client.Send(request), claim.record)) return DiskQueue::Outcome::kSent;
  }
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

// Counts and logs the answer to a request. False: the request is to be sent again.
bool QueueSender::IsFinal(const Result<HttpResponse>& response, const QueueRecord& record) {
  const MutexLock lock(mutex_);
  const int status = response.ok() ? response.value().status : 0;
  if (status >= 200 && status < 300) {
    counts_.samples_sent += record.samples;
    counts_.highest_sent_ms = std::max(counts_.highest_sent_ms, record.timestamp_ms);
    counts_.last_error.clear();
    if (std::exchange(is_failing_, false)) LogInfo("remote.send", options_.target + " takes samples again");
    return true;
  }
  const std::string error =
      response.ok() ? "status " + std::to_string(status) + ": " + BodyExcerpt(response.value().body, kMaxQuotedBytes)
                    : response.error();
  counts_.last_error = error;
  if (response.ok() && !IsRetryable(status)) {
    counts_.samples_refused += record.samples;
    ++counts_.requests_refused;
    is_failing_ = false;
    if (logged_refusals_.size() < kMaxLoggedRefusals && logged_refusals_.insert(WithoutNumbers(error)).second) {
      LogWarning("remote.refused",
                 options_.target + " refuses " + std::to_string(record.samples) + " samples, which are dropped: " + error);
    }
    return true;
  }
  if (response.ok() && response.value().retry_after) {
    not_before_ = std::max(not_before_, steady_clock::now() + std::min(*response.value().retry_after, kMaxRetryAfter));
  }
  if (!stopped_ && !std::exchange(is_failing_, true)) {
    LogWarning("remote.send", "cannot send to " + options_.target + ": " + error + "; samples wait in the disk queue");
  }
  return false;
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
