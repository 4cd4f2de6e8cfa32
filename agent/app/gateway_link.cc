#include "app/gateway_link.h"

#include <utility>

namespace persia::agent {
namespace {

// Whether a push with these goes another way, or otherwise, than with those.
bool SameGateway(const AgentOptions& a, const AgentOptions& b) {
  return a.gateway_address == b.gateway_address && a.gateway_access == b.gateway_access &&
         a.connect_timeout == b.connect_timeout && a.push_timeout == b.push_timeout && a.max_push_bytes == b.max_push_bytes;
}

}  // namespace

GatewayLink::GatewayLink(const AgentOptions& options, Make make)
    : make_(std::move(make)), options_(options), gateway_(make_(options)) {}

PushTransport GatewayLink::Transport() {
  return {.name = Name(),
          .push = [this](const Snapshot& snapshot) { return gateway_ == nullptr ? Status(Done{}) : gateway_->Push(snapshot); },
          .report = [this] { return gateway_ == nullptr ? PushReport{} : gateway_->last_report(); },
          .interrupt = [this] { Interrupt(); },
          .rearm = [this] { Rearm(); },
          .reconfigure = [this](const AgentOptions& options) { return Reconfigure(options); },
          .cut_short = [this] { CutShort(); },
          .end_groups =
              [this](std::chrono::milliseconds limit) {
                return gateway_ == nullptr ? Status(Done{}) : gateway_->EndGroups(options_.job_name, limit);
              }};
}

std::string GatewayLink::Reconfigure(const AgentOptions& options) {
  const std::lock_guard lock(mutex_);
  if (SameGateway(options, options_)) {
    if (gateway_ == nullptr) {
      return "";
    }
    gateway_->LiftQuarantine();  // what a gateway refused may be right by now
    if (!interrupted_) {
      gateway_->Rearm();  // cut short for a change that was taken back since
    }
  } else {
    gateway_.reset();
    gateway_ = make_(options);
    if (interrupted_ && gateway_ != nullptr) {
      gateway_->Interrupt();
    }
  }
  options_ = options;
  return Name();
}

void GatewayLink::Interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  if (gateway_ != nullptr) {
    gateway_->Interrupt();
  }
}

void GatewayLink::CutShort() {
  const std::lock_guard lock(mutex_);
  if (gateway_ != nullptr) {
    gateway_->Interrupt();
  }
}

void GatewayLink::Rearm() {
  const std::lock_guard lock(mutex_);
  interrupted_ = false;
  if (gateway_ != nullptr) {
    gateway_->Rearm();
  }
}

}  // namespace persia::agent
