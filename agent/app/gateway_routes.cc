#include "app/gateway_routes.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "gateways/gateway_list.h"

namespace persia::agent {
namespace {

// Whether pushes are made in the same way with both; the addresses are not compared.
bool SamePushOptions(const AgentOptions& a, const AgentOptions& b) {
  return a.gateway_access == b.gateway_access && a.gateway_proxy == b.gateway_proxy && a.connect_timeout == b.connect_timeout &&
         a.push_timeout == b.push_timeout && a.push_format == b.push_format && a.max_push_bytes == b.max_push_bytes;
}

std::vector<GatewayEntry> EntriesOf(const AgentOptions& options) {
  return options.Pushes() ? ParseGateways(options.gateway_address).value() : std::vector<GatewayEntry>();
}

std::set<std::string> HostsOf(const AgentOptions& options) {
  std::set<std::string> hosts;
  for (const auto& [address, by_name] : EntriesOf(options)) {
    if (by_name || !options.has_gateway_address) hosts.insert(address.host());
  }
  return hosts;
}

}  // namespace

GatewayRoutes::GatewayRoutes(AgentOptions options, GatewayNames& names, Make make)
    : names_(names), make_(std::move(make)), options_(std::move(options)) {}

// None while one of the names has no address: with only some of the gateways, groups would move and soon return. The default is
// no gateway as long as its name has none.
std::vector<GatewayPlace> GatewayRoutes::PlacesOf(const AgentOptions& options) const {
  std::vector<GatewayPlace> places;
  for (const auto& [address, by_name] : EntriesOf(options)) {
    const bool is_looked_up = by_name || !options.has_gateway_address;
    const std::vector<std::string> ips = is_looked_up ? names_.Addresses(address.host()) : std::vector<std::string>();
    if (is_looked_up && ips.empty()) return {};
    if (!by_name) {
      places.push_back({address, "", "", nullptr});
      continue;
    }
    for (const std::string& ip : ips) {
      places.push_back({address.WithHost(ip), "", address.host(), nullptr});
    }
  }
  // An address can be in the list and also be one of a name's.
  std::vector<GatewayPlace> once;
  for (GatewayPlace& place : places) {
    if (std::none_of(once.begin(), once.end(), [&](const auto& other) { return other.address.Url() == place.address.Url(); })) {
      once.push_back(std::move(place));
    }
  }
  return once;
}

PushRoutes GatewayRoutes::Routes() {
  return {.sinks = Take(options_),
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
  const std::vector<GatewayPlace> places = PlacesOf(options);
  return !SamePushOptions(options, options_) || HostsOf(options) != HostsOf(options_) ||
         !std::equal(places.begin(), places.end(), gateways_.begin(), gateways_.end(),
                     [](const GatewayPlace& place, const auto& gateway) { return place.address.Url() == gateway->url(); });
}

PushLanes::Sinks GatewayRoutes::Take(const AgentOptions& options) {
  names_.SetNames(HostsOf(options));
  std::vector<GatewayPlace> places = PlacesOf(options);
  std::vector<GatewayAddress> addresses;
  std::transform(places.begin(), places.end(), std::back_inserter(addresses), [](const auto& place) { return place.address; });
  const std::vector<std::string> names = NamesOf(addresses);
  std::shared_ptr<const GroupPins> pins;
  if (addresses.size() > 1) {
    std::vector<std::string> urls;
    std::transform(addresses.begin(), addresses.end(), std::back_inserter(urls), [](const auto& one) { return one.Url(); });
    pins = std::make_shared<const GroupPins>(std::move(urls));
  }
  std::vector<std::shared_ptr<PushGateway>> taken;
  for (size_t i = 0; i < places.size(); ++i) {
    places[i].name = names[i];
    places[i].pins = pins;
    const auto same = std::find_if(gateways_.begin(), gateways_.end(), [&](const auto& gateway) {
      return gateway->url() == addresses[i].Url() && gateway->name() == names[i];
    });
    if (same != gateways_.end() && SamePushOptions(options, options_)) {
      (*same)->SetPins(pins);
      (*same)->LiftQuarantine();  // the gateway may now accept families that it refused
      taken.push_back(*same);
    } else {
      taken.push_back(make_(options, places[i]));
    }
  }
  gateways_ = std::move(taken);
  options_ = options;
  return {gateways_.begin(), gateways_.end()};
}

}  // namespace persia::agent
