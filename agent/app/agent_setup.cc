#include "app/agent_setup.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/version.h"
#include "config/config.h"
#include "exposure/identities.h"
#include "net/http_client.h"
#include "net/name_lookup.h"
#include "net/url.h"
#include "push/push_gateway.h"

namespace persia::agent {

Pusher::Target MakeGateway(const AgentOptions& options, GroupLedger& ledger) {
  if (!options.Pushes()) return {};
  PushGateway::Options push;
  push.address = GatewayAddress::Parse(options.gateway_address).value();
  push.http.total_timeout = options.push_timeout;
  push.http.access = options.gateway_access;
  const Proxy proxy = ProxyFor(options.gateway_proxy, push.address.scheme() == "https", ProcessEnvironment());
  push.http.proxy = proxy.url;
  push.http.no_proxy = proxy.no_proxy;
  push.http.user_agent = std::string("persia-metrics-agent/") + kVersion;
  push.time_budget = options.push_timeout;
  push.format = options.push_format;
  push.ledger = &ledger;
  push.delete_absent_groups = options.on_instance_end == OnInstanceEnd::kDelete;
  // Most jobs that set no gateway have none.
  const std::string awaited_host = options.has_gateway_address ? "" : push.address.host();
  return {.gateway = std::make_shared<PushGateway>(std::move(push)), .awaited_host = awaited_host};
}

bool HaveSameGateway(const AgentOptions& a, const AgentOptions& b) {
  return a.gateway_address == b.gateway_address && a.has_gateway_address == b.has_gateway_address &&
         a.gateway_access == b.gateway_access && a.gateway_proxy == b.gateway_proxy && a.push_timeout == b.push_timeout &&
         a.push_format == b.push_format;
}

std::string OwnAddress(const AgentOptions& options) {
  // Without a gateway: the default route, by an address that is reserved for documentation.
  const bool has_gateway = options.Pushes() && options.has_gateway_address;
  const GatewayAddress gateway = GatewayAddress::Parse(has_gateway ? options.gateway_address : "192.0.2.1:9091").value();
  // A gateway behind a proxy may have no address here.
  const Proxy proxy = ProxyFor(options.gateway_proxy, gateway.scheme() == "https", ProcessEnvironment());
  if (const auto url = ParseProxyUrl(proxy.url); has_gateway && url.ok())
    return AddressTowards(url.value().host(), url.value().PortOrDefault());
  return AddressTowards(gateway.host(), gateway.port());
}

std::shared_ptr<const Naming> NamingOf(const AgentOptions& options) {
  if (options.mapping == nullptr) return std::make_shared<PlainNaming>();
  return options.mapping;
}

Identity AgentIdentity(const AgentSetup& setup) {
  return ProcessIdentity("agent", setup.options.replica, {.job = setup.options.job_name, .ip_addr = setup.ip_addr});
}

Pusher::Pace PaceOf(const AgentOptions& options) {
  return {.interval = options.push_interval,
          .last_push = options.push_timeout,
          .last_push_if_away = std::min(options.push_timeout, HttpClient::Options{}.connect_timeout)};
}

}  // namespace persia::agent
