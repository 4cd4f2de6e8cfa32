#include "sink/push_gateway.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/grouping_key.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;

bool MayPassLater(int status) { return status == 429 || status >= 500; }

// A body for a log line: one line, not too long.
std::string Quoted(std::string body, size_t max_bytes) {
  while (!body.empty() && static_cast<unsigned char>(body.back()) <= ' ') body.pop_back();
  std::replace_if(
      body.begin(), body.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  if (body.size() > max_bytes) {
    // Not in the middle of a character: UTF-8 goes on with 10xxxxxx.
    while (max_bytes > 0 && (static_cast<unsigned char>(body[max_bytes]) & 0xc0) == 0x80) --max_bytes;
    body.resize(max_bytes);
    body += "...";
  }
  return body;
}

}  // namespace

std::string_view ToString(PushResult result) {
  switch (result) {
    case PushResult::kSuccess:
      return "success";
    case PushResult::kRejected:
      return "rejected";
    case PushResult::kServerError:
      return "server_error";
    case PushResult::kUnreachable:
      return "unreachable";
    case PushResult::kInterrupted:
      break;
  }
  return "interrupted";
}

// One try of one group.
struct PushGateway::Attempt {
  PushResult result = PushResult::kSuccess;
  bool may_pass_later = false;
  std::string error;
};

// A group that has not arrived yet, and how its last try ended.
struct PushGateway::Group {
  size_t identity = 0;
  Attempt last{PushResult::kUnreachable, true, "not tried, the time for this push was used up"};
};

PushGateway::PushGateway(Options options)
    : options_(std::move(options)), client_(options_.http), jitter_(std::random_device()()) {}

Status PushGateway::Push(const Snapshot& snapshot) {
  const auto begin = options_.now();
  deadline_ = begin + options_.time_budget;
  report_ = {};

  const size_t count = snapshot.layout->identities.size();
  std::deque<Group> pending;
  for (size_t i = 0; i < count; ++i) pending.push_back({.identity = (first_group_ + i) % count});
  std::string first_error;
  milliseconds pause = options_.first_pause;
  do {
    PushRound(snapshot, pending, first_error);
    if (pending.empty() || !Pause(pause)) break;
    pause = std::min(2 * pause, options_.longest_pause);
  } while (true);

  first_group_ = pending.empty() ? 0 : pending.front().identity;
  for (Group& group : pending) {
    if (client_.interrupted()) group.last = {PushResult::kInterrupted, false, "the push was interrupted"};
    Count(group.last, GroupingKeyPath(snapshot.layout->identities[group.identity]), first_error);
  }
  report_.duration = options_.now() - begin;
  if (report_.groups_failed == 0) return Done{};
  return Error{name() + ": " + std::to_string(report_.groups_failed) + " of " + std::to_string(report_.groups) +
               " groups did not arrive; " + first_error};
}

// Tries each pending group once and leaves those that are to be tried again. Without an answer to one group there will be none
// to the next: the round ends, and that group goes to the back of the queue, lest it be itself what the gateway stumbles over.
void PushGateway::PushRound(const Snapshot& snapshot, std::deque<Group>& pending, std::string& first_error) {
  std::deque<Group> again;
  while (!pending.empty() && TimeLeft().count() > 0 && !client_.interrupted()) {
    Group group = std::move(pending.front());
    pending.pop_front();
    const Identity& identity = snapshot.layout->identities[group.identity];
    renderer_.RenderIdentity(snapshot, group.identity, text_);
    if (text_.empty()) continue;
    group.last = Send(identity);
    if (group.last.may_pass_later) {
      const bool no_answer = group.last.result == PushResult::kUnreachable;
      again.push_back(std::move(group));
      if (no_answer) break;
    } else {
      Count(group.last, GroupingKeyPath(identity), first_error);
    }
  }
  std::move(again.begin(), again.end(), std::back_inserter(pending));
}

// Sends text_.
PushGateway::Attempt PushGateway::Send(const Identity& identity) {
  HttpRequest request{.method = "PUT",
                      .url = options_.address.Url() + GroupingKeyPath(identity),
                      .headers = {{"Content-Type", std::string(TextRenderer::kContentType)}},
                      .body = text_,
                      .timeout = TimeLeft()};
  const bool pays = text_.size() >= kGzipFromBytes && !options_.address.IsLoopback();
  if (options_.gzip == Gzip::kOn || (options_.gzip == Gzip::kAuto && pays)) {
    // Without memory to compress, the text goes as it is.
    if (compressor_.Compress(text_, compressed_).ok()) {
      request.body = compressed_;
      request.headers.emplace_back("Content-Encoding", "gzip");
    }
  }
  ++report_.requests;
  report_.bytes += request.body.size();
  const Result<HttpResponse> response = client_.Send(request);
  if (client_.interrupted()) return {PushResult::kInterrupted, false, "the push was interrupted"};
  if (!response.ok()) return {PushResult::kUnreachable, true, response.error()};
  const int status = response.value().status;
  report_.http_status = status;
  if (status == 200 || status == 202) return {};
  const bool may_pass_later = MayPassLater(status);
  return {may_pass_later ? PushResult::kServerError : PushResult::kRejected, may_pass_later,
          "status " + std::to_string(status) + ": " + Quoted(response.value().body, options_.max_quoted_bytes)};
}

// Takes down how a group ended.
void PushGateway::Count(const Attempt& attempt, const std::string& where, std::string& first_error) {
  ++report_.groups;
  if (attempt.result == PushResult::kSuccess) return;
  ++report_.groups_failed;
  report_.result = std::max(report_.result, attempt.result);
  if (first_error.empty()) first_error = where + ": " + attempt.error;
}

bool PushGateway::Pause(milliseconds longest) {
  const milliseconds pause(std::uniform_int_distribution<milliseconds::rep>(longest.count() / 2, longest.count())(jitter_));
  if (pause >= TimeLeft() || client_.interrupted()) return false;
  if (options_.sleep) return options_.sleep(pause);
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, pause, [this] { return client_.interrupted(); });
}

milliseconds PushGateway::TimeLeft() const { return std::chrono::duration_cast<milliseconds>(deadline_ - options_.now()); }

void PushGateway::Interrupt() {
  const std::lock_guard lock(mutex_);
  client_.Interrupt();
  wake_.notify_all();
}

void PushGateway::Rearm() { client_.Rearm(); }

}  // namespace persia::agent
