#include "app/gateway_setup.h"

#include <map>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "config/config.h"
#include "gateways/gateway_list.h"
#include "net/name_lookup.h"
#include "net/proxy_environment.h"

namespace persia::agent {

std::shared_ptr<PushGateway> MakeGateway(const AgentOptions& options, const GatewayPlace& place, GroupLedger& ledger) {
  PushGateway::Options push;
  push.address = place.address;
  push.name = place.name;
  push.pins = place.pins;
  push.http.connect_timeout = options.connect_timeout;
  push.http.total_timeout = options.push_timeout;
  push.http.access = options.gateway_access;
  if (place.address.scheme() == "https" && push.http.access.server_name.empty()) {
    push.http.access.server_name = place.host;  // certificates have the name, seldom its addresses
  }
  const Proxy proxy = ProxyFor(options.gateway_proxy, place.address.scheme() == "https", ProcessEnvironment());
  push.http.proxy = proxy.url;
  push.http.no_proxy = proxy.no_proxy;
  push.http.user_agent = std::string("persia-metrics-agent/") + kVersion;
  push.time_budget = options.push_timeout;
  push.format = options.push_format;
  push.max_push_bytes = options.max_push_bytes;
  push.ledger = &ledger;
  push.delete_absent_groups = options.on_instance_end == OnInstanceEnd::kDelete;
  return std::make_shared<PushGateway>(std::move(push));
}

GatewayNames::Options LookUpOptions(std::function<void(bool good)> note, std::function<bool()> is_missing) {
  GatewayNames::Options options;
  options.answered = [note = std::move(note), is_missing = std::move(is_missing),
                      log = std::make_shared<std::map<std::string, StateLog>>()](const std::string& name,
                                                                                 const std::string& error, bool known) {
    if (!error.empty() && !known && is_missing()) return;
    note(error.empty());
    StateLog& of_name = log->try_emplace(name, "gateway.name").first->second;
    if (error.empty()) {
      of_name.Recovered("the gateways' name " + Quoted(name) + " is looked up again");
    } else {
      of_name.Bad(known ? "stays" : "unknown",
                  error + (known ? "; its last known addresses stay in use" : "; nothing is pushed until it has an address"));
    }
  };
  return options;
}

std::string OwnAddress(const AgentOptions& options) {
  // Without a gateway: the default route, by an address that is reserved for documentation.
  const bool has_gateway = options.Pushes() && options.has_gateway_address;
  const auto gateways = ParseGateways(has_gateway ? options.gateway_address : "192.0.2.1:9091");
  const GatewayAddress& first = gateways.value().front().address;
  // A gateway behind a proxy may have no address here.
  const Proxy proxy = ProxyFor(options.gateway_proxy, first.scheme() == "https", ProcessEnvironment());
  if (const auto url = ParseProxyUrl(proxy.url); has_gateway && url.ok()) {
    return AddressTowards(url.value().host(), url.value().PortOrDefault());
  }
  return AddressTowards(first.host(), first.port());
}

}  // namespace persia::agent
