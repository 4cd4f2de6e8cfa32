// The ways from the agent to its gateways, which a reload may lead elsewhere.
//
//   GatewayRoutes routes(options, names, [](const AgentOptions& options, const GatewayPlace& place) { ... });
//   Agent agent(setup, clock, routes.Routes());
//
// Thread safety: whoever asks for changes and makes them is one thread at a time, as Agent::Reconfigure is.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/agent.h"
#include "app/gateway_names.h"
#include "app/options.h"
#include "net/gateway_address.h"
#include "sink/group_pins.h"
#include "sink/push_gateway.h"

namespace persia::agent {

// One of the gateways among the others.
struct GatewayPlace {
  GatewayAddress address;
  std::string name;                       // in logs and metrics
  std::string host;                       // the name by which it was looked up; else empty
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
  std::vector<PushTransport> Take(const AgentOptions& options);
  PushTransport TransportTo(const std::shared_ptr<PushGateway>& gateway) const;

  GatewayNames& names_;
  const Make make_;
  AgentOptions options_;
  std::vector<std::shared_ptr<PushGateway>> gateways_;  // each lives as long as somebody may push to it
};

}  // namespace persia::agent
