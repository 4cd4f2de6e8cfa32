// How a push, or one request of it, ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace persia::agent {

// How a push, or one group of it, ended; the worst of its groups, in this order.
enum class PushResult : uint8_t {
  kSuccess,      // 200 or 202; families that are held back do not change that
  kRejected,     // a 4xx: the gateway does not want this body, and never will
  kServerError,  // 429 or 5xx to the last try
  kUnreachable,  // no answer, or none in time
  kInterrupted,  // by Interrupt
  kDeferred,     // not tried: the gateway asked to be left alone for a while
};
// "success", "rejected", "server_error", "unreachable", "interrupted", "deferred".
std::string_view ToString(PushResult result);

// One request.
struct Attempt {
  PushResult result = PushResult::kSuccess;
  bool may_pass_later = false;
  std::string error{};
  int status = 0;  // 0: no answer
  std::optional<std::chrono::seconds> retry_after{};
  bool new_connection = false;  // it was opened for this request
  // The gateway took the request and closed the connection, as PushGateway 1.11.0 does where others answer 400.
  bool closed_without_answer = false;

  // Whether a family of the request may be the reason.
  [[nodiscard]] bool is_refusal() const { return status == 400 || closed_without_answer; }
};

}  // namespace persia::agent
