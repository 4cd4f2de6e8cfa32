// The gateways that the agent pushes to. A reload or a lookup may change them.
//
//   GatewayRoutes routes(options, names, [](const AgentOptions& options, const GatewayPlace& place) { ... });
//   Agent agent(setup, clock, routes.Routes());
//
// Thread safety: one thread at a time, as Agent::Reconfigure guarantees.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/agent_setup.h"
#include "config/options.h"
#include "gateways/gateway_names.h"
#include "net/gateway_address.h"
#include "push/group_pins.h"
#include "push/push_gateway.h"

namespace persia::agent {

// One gateway among all of the job's.
struct GatewayPlace {
  GatewayAddress address;
  std::string name;                       // in logs and metrics
  std::string host;                       // the name whose address it is; empty if it has none
  std::shared_ptr<const GroupPins> pins;  // null if it is the only one
};

class GatewayRoutes {
 public:
  using Make = std::function<std::shared_ptr<PushGateway>(const AgentOptions&, const GatewayPlace&)>;

  // `names` outlives it.
  GatewayRoutes(AgentOptions options, GatewayNames& names, Make make);
  PushRoutes Routes();

 private:
  [[nodiscard]] std::vector<GatewayPlace> PlacesOf(const AgentOptions& options) const;
  [[nodiscard]] bool Changes(const AgentOptions& options) const;
  PushLanes::Sinks Take(const AgentOptions& options);

  GatewayNames& names_;
  const Make make_;
  AgentOptions options_;
  std::vector<std::shared_ptr<PushGateway>> gateways_;  // shared with the push threads
};

}  // namespace persia::agent
