#include "app/gateway_setup.h"

#include <map>
#include <string_view>
#include <utility>

#include "app/ip_address.h"
#include "app/log.h"
#include "app/text.h"
#include "app/version.h"
#include "net/gateway_list.h"

namespace persia::agent {

SinkLog SinkToLog() {
  return {.note = [](std::string_view event, const std::string& message) { LogInfo(event, message); },
          .warn = [](std::string_view event, const std::string& message) { LogWarning(event, message); }};
}

std::shared_ptr<PushGateway> MakeGateway(const AgentOptions& options, const GatewayPlace& place, GroupLedger& ledger) {
  PushGateway::Options push;
  push.address = place.address;
  push.name = place.name;
  push.pins = place.pins;
  push.http.connect_timeout = options.connect_timeout;
  push.http.total_timeout = options.push_timeout;
  push.http.access = options.gateway_access;
  if (place.address.scheme() == "https" && push.http.access.server_name.empty()) {
    push.http.access.server_name = place.host;  // a certificate has the name, and seldom what it was looked up to
  }
  push.http.user_agent = std::string("persia-metrics-agent/") + kVersion;
  push.time_budget = options.push_timeout;
  push.format = options.push_format;
  push.max_push_bytes = options.max_push_bytes;
  push.log = SinkToLog();
  push.ledger = &ledger;
  push.end_absent_groups = options.on_instance_end == OnInstanceEnd::kDelete;
  return std::make_shared<PushGateway>(std::move(push));
}

GatewayNames::Options LookUps(std::function<void(bool good)> note) {
  GatewayNames::Options options;
  options.told = [note = std::move(note), log = std::make_shared<std::map<std::string, StateLog>>()](
                     const std::string& name, const std::string& error, bool known) {
    note(error.empty());
    StateLog& of_name = log->try_emplace(name, "gateway.name").first->second;
    if (error.empty()) {
      of_name.Recovered("the gateways' name " + Quoted(name) + " is looked up again");
    } else {
      of_name.Bad(known ? "stays" : "unknown",
                  error + (known ? "; its last known addresses stay" : "; nothing is pushed until it has one"));
    }
  };
  return options;
}

std::string OwnAddress(const AgentOptions& options) {
  // Without a gateway: the one by which this host reaches others, whoever they are (an address that documents use).
  const auto gateways = ParseGateways(options.Pushes() ? options.gateway_address : "192.0.2.1:9091");
  const GatewayAddress& first = gateways.value().front().address;
  return AddressTowards(first.host(), first.port());
}

}  // namespace persia::agent
