// The way from the agent to its gateway, which a reload may lead elsewhere: a PushGateway that is replaced between two pushes.
//
//   GatewayLink link(options, [](const AgentOptions& options) { return std::make_unique<PushGateway>(...); });
//   Agent agent(setup, clock, link.Transport());   // the link outlives the agent
//
// Thread safety: of the transport, push, report, reconfigure and rearm belong to the push thread; interrupt and cut_short to
// any.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "app/agent.h"
#include "app/options.h"
#include "sink/push_gateway.h"

namespace persia::agent {

class GatewayLink {
 public:
  // Makes the sink for these settings; null: nothing is to be pushed. Whatever it keeps on disk is free again: the one before
  // is gone when it is called.
  using Make = std::function<std::unique_ptr<PushGateway>(const AgentOptions&)>;

  GatewayLink(const AgentOptions& options, Make make);
  PushTransport Transport();

 private:
  [[nodiscard]] std::string Name() const { return gateway_ == nullptr ? "" : gateway_->name(); }
  std::string Reconfigure(const AgentOptions& options);
  void Interrupt();
  void CutShort();
  void Rearm();

  const Make make_;
  AgentOptions options_;                  // the push thread's
  std::mutex mutex_;                      // guards what follows against those who interrupt
  std::unique_ptr<PushGateway> gateway_;  // replaced by the push thread alone, which may use it without the lock
  bool interrupted_ = false;              // by somebody who does not want to wait, for whatever gateway
};

}  // namespace persia::agent
