// In which format a gateway gets its groups.
//
// A PushGateway reads protobuf as well as text, at less cost for both. What else takes pushes reads text alone, and may answer
// protobuf with success and keep nothing of it. So groups go as text until whoever is behind the connection has said to be a
// PushGateway. It is asked after a push that went well. A push of protobuf over another connection counts once that one has
// said so, too. Who says something else, or does not do with protobuf what a PushGateway does, gets text, and is asked again
// after a while.
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "format/group_format.h"

namespace persia::agent {

class PushFormat {
 public:
  enum class Choice : uint8_t { kAuto, kText, kProtobuf };
  using Time = std::chrono::steady_clock::time_point;

  // `retry`: how long it stays with text before it asks again.
  PushFormat(Choice choice, std::chrono::milliseconds retry)
      : automatic_(choice == Choice::kAuto),
        retry_(retry),
        current_(choice == Choice::kProtobuf ? GroupFormat::kProtobuf : GroupFormat::kText) {}

  [[nodiscard]] GroupFormat current() const { return current_; }
  // Whether protobuf was our idea, and so has to prove itself.
  [[nodiscard]] bool on_trial() const { return automatic_ && current_ == GroupFormat::kProtobuf; }
  // Whether whoever took a text is to be asked what it is.
  [[nodiscard]] bool ask(Time now) const { return automatic_ && current_ == GroupFormat::kText && now >= ask_at_; }
  // It is a PushGateway, or not.
  void Answered(bool is_push_gateway, Time now);
  // There is no answer to a push: somebody else may be there when one comes.
  void Lost();
  // Protobuf does not do. False if it was not on trial.
  bool GiveUpProtobuf(Time now);
  // What was given up is tried again with the next push.
  void Lift() { ask_at_ = {}; }

 private:
  const bool automatic_;
  const std::chrono::milliseconds retry_;
  GroupFormat current_;
  Time ask_at_{};
};

// Where a PushGateway tells of itself, and whether this is what it tells there.
inline constexpr std::string_view kGatewayStatusPath = "/api/v1/status";
[[nodiscard]] bool IsPushGateway(int status, std::string_view body);

}  // namespace persia::agent
