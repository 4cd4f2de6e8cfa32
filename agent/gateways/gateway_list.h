// Parses the setting `gateway_address`: one address, or several that are separated by commas.
//
//   Result<std::vector<GatewayEntry>> gateways = ParseGateways("gateway-0:9091, dns+gateways.example.com:9091");
//
// Thread safety: functions of their arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/gateway_address.h"

namespace persia::agent {

struct GatewayEntry {
  GatewayAddress address;
  // dns+host:port: there is a gateway at each address of the host.
  bool by_name = false;

  friend bool operator==(const GatewayEntry& a, const GatewayEntry& b) {
    return a.by_name == b.by_name && a.address.Url() == b.address.Url();
  }
};

// In the order of the text, at least one. An address that is given twice is an error.
Result<std::vector<GatewayEntry>> ParseGateways(std::string_view text);

// Their names in logs and in the label `gateway`: host:port, or the whole URL of those that share one.
std::vector<std::string> NamesOf(const std::vector<GatewayAddress>& gateways);

}  // namespace persia::agent
