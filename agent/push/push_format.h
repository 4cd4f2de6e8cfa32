// The format of pushes to a gateway: text or protobuf.
//
// A PushGateway reads both, protobuf at less cost for both sides. Other servers that accept pushes read only text, and may
// answer protobuf with success and store none of it. So after a successful push of text, the agent queries whether the server
// is a PushGateway, and then sends protobuf. After a success of protobuf over a new connection it queries that connection's
// server, too. A server that is not a PushGateway, or fails on protobuf, gets text, and is queried again after a while.
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstdint>

#include "format/group_renderer.h"

namespace persia::agent {

class PushFormat {
 public:
  enum class Choice : uint8_t { kAuto, kText, kProtobuf };
  using Time = std::chrono::steady_clock::time_point;

  // `retry`: how long groups are sent as text before the gateway is queried again.
  PushFormat(Choice choice, std::chrono::milliseconds retry)
      : automatic_(choice == Choice::kAuto),
        retry_(retry),
        current_(choice == Choice::kProtobuf ? ExpositionFormat::kProtobuf : ExpositionFormat::kText) {}

  [[nodiscard]] ExpositionFormat current() const { return current_; }
  // Whether protobuf was chosen automatically, so that a failure may be due to it.
  [[nodiscard]] bool on_trial() const { return automatic_ && current_ == ExpositionFormat::kProtobuf; }
  // Whether the server that accepted a text must be queried whether it is a PushGateway.
  [[nodiscard]] bool MustAsk(Time now) const { return automatic_ && current_ == ExpositionFormat::kText && now >= ask_at_; }
  void Answered(bool is_push_gateway, Time now) {
    if (!automatic_) return;
    current_ = is_push_gateway ? ExpositionFormat::kProtobuf : ExpositionFormat::kText;
    ask_at_ = now + retry_;
  }
  // A push got no answer: another server may be there the next time.
  void Lost() {
    if (!automatic_) return;
    current_ = ExpositionFormat::kText;
    ask_at_ = {};
  }
  // Protobuf failed. False if it was not on trial.
  bool GiveUpProtobuf(Time now) {
    if (!on_trial()) return false;
    Answered(false, now);
    return true;
  }
  // The gateway is queried again after the next push.
  void Lift() { ask_at_ = {}; }

 private:
  const bool automatic_;
  const std::chrono::milliseconds retry_;
  ExpositionFormat current_;
  Time ask_at_{};
};

}  // namespace persia::agent
