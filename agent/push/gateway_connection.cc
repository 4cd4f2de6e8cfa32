#include "push/gateway_connection.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "net/response_errors.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kStatusPath = "/api/v1/status";
// Of a refusal's body in an error.
constexpr size_t kMostQuotedBytes = 500;

// What to do about a status that the address or the settings cause.
std::string_view RemedyFor(int status) {
  if (status == 404 || status == 405) return "; gateway_address must be the address of a PushGateway, without /metrics";
  if (status == 413) return "; raise the limit of that server (in nginx, client_max_body_size)";
  return "";
}

std::string ErrorOf(const HttpResponse& response) {
  const std::string status = "status " + std::to_string(response.status) + ": ";
  if (!response.redirects_to.empty()) {
    return status + "it redirects to " + response.redirects_to +
           ", which is not followed; set gateway_address to where it accepts pushes";
  }
  return status + BodyExcerpt(response.body, kMostQuotedBytes) + std::string(RemedyFor(response.status));
}

}  // namespace

Attempt Attempt::NotSent() {
  return {.result = PushResult::kUnreachable,
          .may_pass_later = true,
          .error = "not tried, the time for this push was used up",
          .sent = false};
}

Attempt Attempt::Interrupted() { return {.result = PushResult::kInterrupted, .error = "the push was interrupted"}; }

void GatewayConnection::Begin(TimePoint deadline) {
  deadline_ = deadline;
  traffic_ = {};
}

milliseconds GatewayConnection::TimeLeft() const { return std::chrono::duration_cast<milliseconds>(deadline_ - Now()); }

Attempt GatewayConnection::Send(std::string_view method, const std::string& path, ExpositionFormat format,
                                const std::string& body, Refusal& refusal) {
  HttpRequest request{.method = std::string(method),
                      .url = url_ + path,
                      .headers = {{"Content-Type", std::string(ContentType(format))}},
                      .body = body,
                      .timeout = TimeLeft(),
                      .receive = [&](int status, std::string_view piece) { return status != 400 || refusal.Add(piece); }};
  if (request.timeout.count() <= 0) return Attempt::NotSent();
  const bool pays = body.size() >= kGzipFromBytes && !options_.address.IsLoopback();
  if (options_.gzip == Gzip::kOn || (options_.gzip == Gzip::kAuto && pays)) {
    // If there is no memory to compress it, it is sent uncompressed.
    if (compressor_.Compress(body, compressed_).ok()) {
      request.body = compressed_;
      request.headers.emplace_back("Content-Encoding", "gzip");
    }
  }
  ++traffic_.requests;
  traffic_.bytes += request.body.size();
  Attempt attempt = Request(request);
  if (attempt.status != 0) traffic_.http_status = attempt.status;
  return attempt;
}

// PushGateway 1.5.1 answers {"status":"success","data":{"build_information":{"branch":...,"version":"1.5.1"}},"flags":...}}, as
// all do since 1.0. Within a JSON string the quotes would be escaped.
bool GatewayConnection::IsPushGateway() {
  const milliseconds limit = std::min(options_.status_limit, TimeLeft() / 2);
  if (limit.count() <= 0) return false;
  const Result<HttpResponse> answer = client_.Send({.method = "GET", .url = url_ + std::string(kStatusPath), .timeout = limit});
  // An answer over a new connection may be another server's.
  return answer.ok() && !answer.value().new_connection && answer.value().status == 200 &&
         answer.value().body.find("\"build_information\"") != std::string::npos;
}

Attempt GatewayConnection::Delete(const std::string& url, bool anonymous, milliseconds timeout) {
  if (timeout.count() <= 0) return Attempt::NotSent();
  return Request({.method = "DELETE", .url = url, .timeout = timeout, .anonymous = anonymous});
}

Attempt GatewayConnection::Request(const HttpRequest& request) {
  const Result<HttpResponse> response = client_.Send(request);
  if (client_.interrupted()) return Attempt::Interrupted();
  if (!response.ok()) {
    return {.result = PushResult::kUnreachable,
            .may_pass_later = true,
            .error = response.error(),
            .closed_without_answer = client_.closed_without_answer()};
  }
  const int status = response.value().status;
  Attempt attempt{.status = status, .new_connection = response.value().new_connection};
  if (status == 200 || status == 202) return attempt;
  attempt.may_pass_later = IsRetryable(status);
  attempt.result = attempt.may_pass_later ? PushResult::kServerError : PushResult::kRejected;
  attempt.error = ErrorOf(response.value());
  if (status == 429 || status == 503) attempt.retry_after = response.value().retry_after;
  return attempt;
}

bool GatewayConnection::Pause(milliseconds pause) {
  if (pause >= TimeLeft() || interrupted()) return false;
  if (options_.sleep) return options_.sleep(pause);
  const auto end = std::chrono::steady_clock::now() + pause;
  const MutexLock lock(mutex_);
  while (!interrupted() && std::chrono::steady_clock::now() < end) wake_.WaitUntil(mutex_, end);
  return !interrupted();
}

void GatewayConnection::Interrupt() {
  const MutexLock lock(mutex_);
  client_.Interrupt();
  wake_.NotifyAll();
}

}  // namespace persia::agent
