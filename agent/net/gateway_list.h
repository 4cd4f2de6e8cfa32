// The gateways of a job, as `gateway_address` gives them: one address, or several that are separated by commas.
//
//   Result<std::vector<GatewayEntry>> gateways = ParseGateways("gateway-0:9091, dns+gateways.example.com:9091");
//
// Thread safety: functions of their arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/result.h"
#include "net/gateway_address.h"

namespace persia::agent {

struct GatewayEntry {
  GatewayAddress address;
  // dns+host:port: the host is a name that stands for a gateway at each of its addresses.
  bool by_name = false;

  friend bool operator==(const GatewayEntry& a, const GatewayEntry& b) {
    return a.by_name == b.by_name && a.address.Url() == b.address.Url();
  }
};

// In the order of the text, at least one. An address that stands twice is refused: it would be no second gateway.
Result<std::vector<GatewayEntry>> ParseGateways(std::string_view text);

// How to call each of them in logs and in the label `gateway`: host:port, or the whole URL of those that share one.
std::vector<std::string> NamesOf(const std::vector<GatewayAddress>& gateways);

}  // namespace persia::agent
