#include "app/gateway_routes.h"

#include <algorithm>
#include <utility>

#include "net/gateway_list.h"

namespace persia::agent {
namespace {

// Whether a push with these goes otherwise than with those, wherever it goes.
bool SameManner(const AgentOptions& a, const AgentOptions& b) {
  return a.gateway_access == b.gateway_access && a.connect_timeout == b.connect_timeout && a.push_timeout == b.push_timeout &&
         a.max_push_bytes == b.max_push_bytes;
}

std::vector<GatewayAddress> AddressesOf(const AgentOptions& options) {
  return options.Pushes() ? ParseGateways(options.gateway_address).value() : std::vector<GatewayAddress>();
}

}  // namespace

GatewayRoutes::GatewayRoutes(AgentOptions options, Make make) : make_(std::move(make)), options_(std::move(options)) {}

PushRoutes GatewayRoutes::Routes() {
  return {.transports = Take(options_),
          .changes = [this](const AgentOptions& options) { return Changes(options); },
          .take = [this](const AgentOptions& options) { return Take(options); },
          .retry_refused =
              [this] {
                for (const auto& gateway : gateways_) {
                  gateway->LiftQuarantine();
                }
              }};
}

bool GatewayRoutes::Changes(const AgentOptions& options) const {
  const std::vector<GatewayAddress> addresses = AddressesOf(options);
  return !SameManner(options, options_) ||
         !std::equal(addresses.begin(), addresses.end(), gateways_.begin(), gateways_.end(),
                     [](const GatewayAddress& address, const auto& gateway) { return address.Url() == gateway->url(); });
}

std::vector<PushTransport> GatewayRoutes::Take(const AgentOptions& options) {
  const std::vector<GatewayAddress> addresses = AddressesOf(options);
  const std::vector<std::string> names = NamesOf(addresses);
  std::shared_ptr<const GroupPins> pins;
  if (addresses.size() > 1) {
    std::vector<std::string> urls;
    std::transform(addresses.begin(), addresses.end(), std::back_inserter(urls), [](const auto& one) { return one.Url(); });
    pins = std::make_shared<const GroupPins>(std::move(urls));
  }
  std::vector<std::shared_ptr<PushGateway>> taken;
  std::vector<PushTransport> transports;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto same = std::find_if(gateways_.begin(), gateways_.end(), [&](const auto& gateway) {
      return gateway->url() == addresses[i].Url() && gateway->name() == names[i];
    });
    if (same != gateways_.end() && SameManner(options, options_)) {
      (*same)->SetPins(pins);
      (*same)->LiftQuarantine();  // what it refused may be right by now
      taken.push_back(*same);
    } else {
      taken.push_back(make_(options, {addresses[i], names[i], pins}));
    }
    transports.push_back(TransportTo(taken.back()));
  }
  gateways_ = std::move(taken);
  options_ = options;
  return transports;
}

PushTransport GatewayRoutes::TransportTo(const std::shared_ptr<PushGateway>& gateway) const {
  return {.name = gateway->name(),
          .push = [gateway](const Snapshot& snapshot) { return gateway->Push(snapshot); },
          .report = [gateway] { return gateway->last_report(); },
          .interrupt = [gateway] { gateway->Interrupt(); },
          .rearm = [gateway] { gateway->Rearm(); },
          .end_groups = [gateway,
                         job = options_.job_name](std::chrono::milliseconds limit) { return gateway->EndGroups(job, limit); }};
}

}  // namespace persia::agent
