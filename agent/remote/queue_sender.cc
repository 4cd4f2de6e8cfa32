#include "remote/queue_sender.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/thread.h"
#include "remote/write_request.h"

namespace persia::agent {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kMaxRetryAfter = std::chrono::hours(1);
constexpr size_t kComparedBytes = 120;
constexpr int kTooLarge = 413;
// Uncompressed. The writer's requests have at most a few MiB; the sender may have another file's.
constexpr size_t kMaxBodyBytes = 8 << 20;

// Times and counts differ from one answer to the next.
std::string WithoutNumbers(std::string text) {
  std::erase_if(text, IsDigit);
  return text.substr(0, kComparedBytes);
}

bool IsFinal(int status) {
  constexpr auto& kFinal = RemoteWriteCounts::kFinalStatuses;
  return std::ranges::find(kFinal, status) != std::end(kFinal);
}

bool NamesNative(const std::string& error) { return error.find("native histogram") != std::string::npos; }

}  // namespace

QueueSender::QueueSender(Options options)
    : options_(std::move(options)),
      client_(ClientOptions(options_.endpoint)),
      metadata_(options_.endpoint),
      backoff_(options_.endpoint.min_backoff, options_.endpoint.max_backoff),
      log_("remote.send") {}

QueueSender::~QueueSender() { Finish(steady_clock::now()); }

void QueueSender::Start() {
  thread_ = StartThread(
      "rw send " + options_.endpoint.name, [this] { Run(); });
}

void QueueSender::Run() {
  while (auto request = options_.queue->Next()) {
    if (!Send(*std::move(request))) break;
    if (is_accepting_ && options_.queue->empty()) metadata_.SendIfDue(client_);
  }
  if (is_accepting_) metadata_.SendChanged(client_);
  const MutexLock lock(mutex_);
  has_ended_ = true;
  changed_.NotifyAll();
}

// False: stopped.
bool QueueSender::Send(DiskQueue::Request request) {
  std::vector<Piece> pieces;  // the next one is the last of them
  pieces.push_back({std::move(request.body), request.record.samples});
  for (bool is_retry = false; !pieces.empty();) {
    // Before the wait as well: expired requests do not wait one after the other.
    if (!options_.queue->StillWanted()) break;
    if (!WaitForAttempt()) return false;
    if (!options_.queue->StillWanted()) break;
    const Result<HttpResponse> response = Post(pieces.back().body, is_retry);
    const Verdict verdict = Judge(response, pieces.back().samples, request.record);
    is_retry = verdict == Verdict::kAgain;
    is_accepting_ = verdict == Verdict::kAccepted;
    if (is_accepting_) backoff_ = Backoff(options_.endpoint.min_backoff, options_.endpoint.max_backoff);
    // If no request is small enough for the target, each sample is refused, after two requests.
    if (is_retry || (verdict == Verdict::kRefused && response.value().status == kTooLarge)) {
      const MutexLock lock(mutex_);
      next_attempt_ = steady_clock::now() + backoff_.NextJittered();
    }
    if (verdict == Verdict::kTooLarge)
      Halve(pieces);
    else if (!is_retry)
      pieces.pop_back();
  }
  uint32_t unanswered = 0;
  for (const Piece& piece : pieces) unanswered += piece.samples;
  options_.queue->Finish(unanswered);
  return true;
}

// Replaces the last piece by its halves. REQUIRES: it has more than one sample.
void QueueSender::Halve(std::vector<Piece>& pieces) {
  const Piece whole = std::move(pieces.back());
  pieces.pop_back();
  if (!std::exchange(is_halving_logged_, true)) {
    LogInfo("remote.halves",
            options_.endpoint.name + " finds a request of " + std::to_string(whole.samples) +
                " samples too large (status 413); such requests are sent in halves. A lower max_samples_per_send "
                "saves the first attempt");
  }
  const std::optional<std::string> plain = SnappyUncompress(whole.body, kMaxBodyBytes);
  const std::optional<Halves> halves = plain ? HalvesOf(*plain) : std::nullopt;
  if (!halves) {  // the body is not what the writer wrote
    const MutexLock lock(mutex_);
    counts_.samples_refused[kTooLarge] += whole.samples;
    return;
  }
  for (const std::string_view half : {halves->second, halves->first}) {
    Piece& piece = pieces.emplace_back(Piece{.body = {}, .samples = SeriesIn(half)});
    SnappyCompress(half, piece.body);
  }
}

Result<HttpResponse> QueueSender::Post(std::string_view body, bool is_retry) {
  const auto begin = steady_clock::now();
  Result<HttpResponse> response = client_.Send(WriteRequestTo(options_.endpoint, body));
  const MutexLock lock(mutex_);
  counts_.bytes += body.size();
  counts_.retries += is_retry ? 1 : 0;
  counts_.request_durations.Add(steady_clock::now() - begin);
  ++counts_.requests[response.ok() ? response.value().status : 0];
  return response;
}

// Waits as long as the backoff and the target demand. False: stopped.
bool QueueSender::WaitForAttempt() {
  const MutexLock lock(mutex_);
  for (;;) {
    const auto until = std::max(next_attempt_, not_before_);
    if (stopped_ || until <= steady_clock::now()) return !stopped_;
    changed_.WaitUntil(mutex_, until);
  }
}

// Counts and logs the answer.
QueueSender::Verdict QueueSender::Judge(const Result<HttpResponse>& response, uint32_t samples, const QueueRecord& record) {
  const int status = response.ok() ? response.value().status : 0;
  if (status >= 200 && status < 300) {
    {
      const MutexLock lock(mutex_);
      counts_.samples_sent += samples;
      counts_.highest_sent_ms = std::max(counts_.highest_sent_ms, record.timestamp_ms);
      counts_.last_error.clear();
      if (!is_failing_) return Verdict::kAccepted;
    }
    LogRecovery(samples);
    return Verdict::kAccepted;
  }
  if (status == kTooLarge && samples > 1) return Verdict::kTooLarge;
  const std::string error = RefusalOf(response);
  const bool is_unwanted_native = record.is_native != 0 && !options_.takes_native && response.ok() && NamesNative(error);
  const bool is_final = IsFinal(status) || is_unwanted_native;
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
    log_.Bad(kind, options_.endpoint.name + " refuses " + std::to_string(samples) + " samples" +
                       (is_unwanted_native ? " of native histograms, queued while send_native_histograms was true" : "") +
                       ", which are dropped: " + error);
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
    is_failing_ = false;
    refused = std::exchange(refused_in_failure_, 0);
  }
  log_.Recovered(options_.endpoint.name + " accepts samples again; " +
                 std::to_string(pending - std::min<uint64_t>(pending, accepted)) + " wait" +
                 (refused > 0 ? ", " + std::to_string(refused) + " were refused" : ""));
}

void QueueSender::Finish(steady_clock::time_point deadline) {
  options_.queue->EndWhenEmpty();
  {
    const MutexLock lock(mutex_);
    next_attempt_ = {};
    changed_.NotifyAll();
    while (!has_ended_ && !stopped_ && steady_clock::now() < deadline) changed_.WaitUntil(mutex_, deadline);
  }
  Stop();
  if (thread_.joinable()) thread_.join();
}

void QueueSender::Stop() {
  options_.queue->Stop();
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  client_.Interrupt();
}

RemoteWriteCounts QueueSender::counts() const {
  RemoteWriteCounts counts;
  {
    const MutexLock lock(mutex_);
    counts = counts_;
  }
  metadata_.AddCountsTo(counts);
  return counts;
}

}  // namespace persia::agent
