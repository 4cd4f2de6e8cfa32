#include "sink/push_format.h"

namespace persia::agent {

void PushFormat::Answered(bool is_push_gateway, Time now) {
  if (!automatic_) return;
  current_ = is_push_gateway ? GroupFormat::kProtobuf : GroupFormat::kText;
  ask_at_ = now + retry_;
}

void PushFormat::Lost() {
  if (!automatic_) return;
  current_ = GroupFormat::kText;
  ask_at_ = {};
}

bool PushFormat::GiveUpProtobuf(Time now) {
  if (!on_trial()) return false;
  Answered(false, now);
  return true;
}

// PushGateway 1.5.1 says {"status":"success","data":{"build_information":{"branch":...,"version":"1.5.1"},"flags":...}}, as all
// do since 1.0. Inside of a text the quotes would be escaped.
bool IsPushGateway(int status, std::string_view body) {
  return status == 200 && body.find("\"build_information\"") != std::string_view::npos;
}

}  // namespace persia::agent
