#include "remote/queue_sender.h"

#include <algorithm>
#include <iterator>
#include <system_error>

#include "base/text.h"
#include "base/thread.h"
#include "remote/write_request.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kMaxRetryAfter = std::chrono::hours(1);
constexpr size_t kComparedBytes = 120;
constexpr int kTooLarge = 413;
// Uncompressed. The writer's requests have at most a few MiB; each sender may have another file's.
constexpr size_t kMaxBodyBytes = 8 << 20;

// Times and counts differ from one answer to the next.
std::string WithoutNumbers(std::string text) {
  std::erase_if(text, IsDigit);
  return text.substr(0, kComparedBytes);
}

bool IsFinal(int status) {
  return std::ranges::find(QueueSender::kFinalStatuses, status) != std::end(QueueSender::kFinalStatuses);
}

bool NamesNative(const std::string& error) { return error.find("native histogram") != std::string::npos; }

}  // namespace

void QueueSender::Start() {
  try {
    while (workers_.size() < options_.threads) {
      options_.before_thread(workers_.size() + 1);
      std::unique_ptr<Worker> worker(new Worker{.client = HttpClient(ClientOptions(options_.endpoint)),
                                                .backoff = Backoff(options_.min_backoff, options_.max_backoff)});
      worker->thread = StartThread("rw send " + options_.endpoint.name, [this, &at = *worker] { Run(at); });
      workers_.push_back(std::move(worker));
    }
  } catch (const std::system_error& error) {
    if (workers_.empty()) throw;
    LogWarning("remote.threads", "remote_write " + options_.endpoint.name + ": cannot start a thread: " + error.what() + "; " +
                                     std::to_string(workers_.size()) + " of " + std::to_string(options_.threads) +
                                     " senders work");
  }
}

void QueueSender::Run(Worker& worker) {
  while (const auto claim = options_.queue->Next()) {
    uint32_t left = claim->record.samples;
    if (const auto outcome = Send(*claim, claim->body, left, worker)) options_.queue->Finish(*claim, *outcome, left);
  }
}

std::optional<DiskQueue::Outcome> QueueSender::Send(const DiskQueue::Claim& claim, std::string_view body, uint32_t& left,
                                                    Worker& worker) {
  std::string without_native;
  for (bool is_retry = false;; is_retry = true) {
    // Before the wait as well: expired requests do not wait one after the other.
    if (!options_.queue->StillWanted(claim)) return DiskQueue::Outcome::kDropped;
    if (!WaitUntil(worker.next_attempt)) return std::nullopt;
    if (!options_.queue->StillWanted(claim)) return DiskQueue::Outcome::kDropped;
    const Result<HttpResponse> response = Post(body, is_retry, worker.client);
    worker.next_attempt = {};
    if (auto rest = DropNative(body, response, left)) {
      if (left == 0) return DiskQueue::Outcome::kSent;
      without_native = *std::move(rest);
      body = without_native;
      continue;
    }
    const Verdict verdict = Judge(response, left, claim.record.timestamp_ms);
    switch (verdict) {
      case Verdict::kAccepted:
        worker.backoff = Backoff(options_.min_backoff, options_.max_backoff);
        left = 0;
        return DiskQueue::Outcome::kSent;
      case Verdict::kRefused:
        // If no request is small enough for the target, each sample is refused, after two requests.
        if (response.value().status == kTooLarge) worker.next_attempt = steady_clock::now() + worker.backoff.NextJittered();
        left = 0;
        return DiskQueue::Outcome::kSent;
      case Verdict::kTooLarge:
        LogHalving(left);
        return SendHalves(claim, body, left, worker);
      case Verdict::kAgain:
        worker.next_attempt = steady_clock::now() + worker.backoff.NextJittered();
        break;
    }
  }
}

std::optional<std::string> QueueSender::DropNative(std::string_view body, const Result<HttpResponse>& response,
                                                   uint32_t& left) {
  if (options_.takes_native || !response.ok()) return std::nullopt;
  const int status = response.value().status;
  if (status < 300 || status == kTooLarge || (!IsFinal(status) && !NamesNative(response.value().body))) return std::nullopt;
  const std::optional<std::string> plain = SnappyUncompress(body, kMaxBodyBytes);
  const std::optional<WithoutNative> rest = plain ? RemoveNative(*plain) : std::nullopt;
  if (!rest) return std::nullopt;
  {
    const MutexLock lock(mutex_);
    counts_.samples_refused[status] += rest->histograms;
    if (is_failing_) refused_in_failure_ += rest->histograms;
  }
  LogWarning("remote.native", options_.endpoint.name +
                                  " refuses a request with native histograms, which were queued while send_native_histograms "
                                  "was true; they are dropped: " +
                                  RefusalOf(response));
  left -= std::min(left, rest->histograms);
  std::string compressed;
  SnappyCompress(rest->body, compressed);
  return compressed;
}

void QueueSender::LogHalving(uint32_t samples) {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(is_halving_logged_, true)) return;
  }
  LogInfo("remote.halves",
          options_.endpoint.name + " finds a request of " + std::to_string(samples) +
              " samples too large (status 413); such requests are sent in halves. A lower max_samples_per_send "
              "saves the first attempt");
}

// REQUIRES: more than one sample.
std::optional<DiskQueue::Outcome> QueueSender::SendHalves(const DiskQueue::Claim& claim, std::string_view body, uint32_t& left,
                                                          Worker& worker) {
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
    const auto outcome = Send(claim, compressed, left_of_half, worker);
    left += left_of_half;
    if (outcome != DiskQueue::Outcome::kSent) return outcome;
  }
  return DiskQueue::Outcome::kSent;
}

Result<HttpResponse> QueueSender::Post(std::string_view body, bool is_retry, HttpClient& client) {
  const auto begin = steady_clock::now();
  Result<HttpResponse> response = client.Send(WriteRequestTo(options_.endpoint, body));
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
      if (!is_failing_) return Verdict::kAccepted;
    }
    LogRecovery(samples);
    return Verdict::kAccepted;
  }
  if (status == kTooLarge && samples > 1) return Verdict::kTooLarge;
  const std::string error = RefusalOf(response);
  const bool is_final = IsFinal(status);
  std::chrono::seconds pause{0};
  {
    const MutexLock lock(mutex_);
    if (stopped_ && !response.ok()) return Verdict::kAgain;  // by us
    counts_.last_error = error;
    is_failing_ = true;
    if (is_final) {
      counts_.samples_refused[status] += samples;
      refused_in_failure_ += samples;
    } else if (response.ok() && response.value().retry_after) {
      pause = std::min(*response.value().retry_after, kMaxRetryAfter);
      not_before_ = std::max(not_before_, steady_clock::now() + pause);
    }
  }
  const std::string kind = response.ok() ? "status " + std::to_string(status) : WithoutNumbers(error);
  if (is_final) {
    log_.Bad(kind, options_.endpoint.name + " refuses " + std::to_string(samples) + " samples, which are dropped: " + error);
    return Verdict::kRefused;
  }
  const bool is_about_native = options_.takes_native && NamesNative(error);
  const std::string waiting =
      "cannot send to " + options_.endpoint.name + ": " + error +
      (is_about_native ? "; enable native histograms there, or set send_native_histograms: false" : "") +
      "; samples wait in the disk queue";
  if (pause.count() > 0)
    log_.Bad(kind + ", a pause", waiting + " for the " + std::to_string(pause.count()) + " s that it asks for (Retry-After)");
  else
    log_.Bad(kind, waiting);
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
  log_.Recovered(options_.endpoint.name + " accepts samples again; " +
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
  for (const auto& worker : workers_)
    if (worker->thread.joinable()) worker->thread.join();
}

bool QueueSender::Accepts() const {
  const MutexLock lock(mutex_);
  return counts_.samples_sent > 0 && counts_.last_error.empty();
}

QueueSender::Counts QueueSender::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace persia::agent
