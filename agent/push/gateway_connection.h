// All requests to a gateway, each within a deadline; and the pauses between them.
//
// PushGateway owns it; GroupSender and GroupReaper send through it. Nothing here calls back.
//
//   connection.Begin(now + time_budget);
//   Attempt attempt = connection.Send("PUT", path, ExpositionFormat::kText, body, refusal);
//
// Thread safety: Interrupt, Rearm and interrupted from any thread; the rest from one.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "format/group_renderer.h"
#include "net/gzip.h"
#include "net/http_client.h"
#include "net/url.h"
#include "push/refusal.h"

namespace persia::agent {

// The result of a push, or of one group of it. The result of a push is the worst of its groups', in this order.
enum class PushResult : uint8_t {
  kSuccess,      // 200 or 202; families that are held back do not change that
  kRejected,     // a 4xx: the gateway will never accept this body
  kServerError,  // 429 or 5xx to the last attempt
  kUnreachable,  // no answer, or none in time
  kInterrupted,  // by Interrupt
  kDeferred,     // not tried, since the gateway sent Retry-After
};

inline std::string_view ToString(PushResult result) {
  static constexpr std::array<std::string_view, 6> kNames = {"success",     "rejected",    "server_error",
                                                             "unreachable", "interrupted", "deferred"};
  return kNames[static_cast<size_t>(result)];
}

// How one request ended.
struct Attempt {
  PushResult result = PushResult::kSuccess;
  bool may_pass_later = false;
  std::string error{};
  int status = 0;  // 0: no answer
  std::optional<std::chrono::seconds> retry_after{};
  bool new_connection = false;  // it was opened for this request
  // The gateway took the request and closed the connection, as PushGateway 1.11.0 does where others answer 400.
  bool closed_without_answer = false;
  bool sent = true;  // false: there was no time left for it

  static Attempt NotSent();
  static Attempt Interrupted();
  // Whether a family of the request may be the reason.
  [[nodiscard]] bool is_refusal() const { return status == 400 || closed_without_answer; }
};

class GatewayConnection {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  enum class Gzip : uint8_t {
    kOff,
    kOn,
    kAuto,  // a body of kGzipFromBytes or more to a peer that is not on this host
  };
  // A smaller body fits the first flight of a TCP connection anyway (README.md, "When gzip pays").
  static constexpr size_t kGzipFromBytes = 16 * 1024;

  struct Options {
    GatewayAddress address;
    HttpClient::Options http{};
    Gzip gzip = Gzip::kAuto;
    // Of IsPushGateway.
    std::chrono::milliseconds status_limit{1000};
    std::function<TimePoint()> now = std::chrono::steady_clock::now;
    // For tests. False: the pause was interrupted.
    std::function<bool(std::chrono::milliseconds)> sleep{};
  };
  // Of Send, since Begin.
  struct Traffic {
    size_t requests = 0;
    uint64_t bytes = 0;
    int http_status = 0;  // of the last answer, 0 if none came
  };

  explicit GatewayConnection(Options options)
      : options_(std::move(options)), url_(options_.address.Url()), client_(options_.http) {}

  // Starts the count of traffic anew. Send, IsPushGateway and Pause end at `deadline`.
  void Begin(TimePoint deadline);
  [[nodiscard]] std::chrono::milliseconds TimeLeft() const;
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }
  [[nodiscard]] TimePoint Now() const { return options_.now(); }
  [[nodiscard]] const std::string& url() const { return url_; }

  // Sends a body of this format to the group at `path`; a refusal of status 400 is read into `refusal`.
  Attempt Send(std::string_view method, const std::string& path, ExpositionFormat format, const std::string& body,
               Refusal& refusal);
  // Whether the server behind the connection of the last request is a PushGateway.
  bool IsPushGateway();
  // `url`: of a group on any gateway. `anonymous`: without credentials, for a gateway that is no longer configured.
  Attempt Delete(const std::string& url, bool anonymous, std::chrono::milliseconds timeout);
  // Removes credentials from a text that quotes the gateway: its answer may repeat the request.
  void Redact(std::string& text) const { client_.Redact(text); }

  // False if there is no time for such a pause, or it was interrupted.
  bool Pause(std::chrono::milliseconds pause);
  void Interrupt();
  void Rearm() { client_.Rearm(); }
  [[nodiscard]] bool interrupted() const { return client_.interrupted(); }

 private:
  Attempt Request(const HttpRequest& request);

  const Options options_;
  const std::string url_;
  HttpClient client_;
  GzipCompressor compressor_;
  std::string compressed_;  // kept for its memory
  TimePoint deadline_{};
  Traffic traffic_;

  Mutex mutex_;
  CondVar wake_;  // ends a pause; the client knows whether it was interrupted
};

}  // namespace persia::agent
