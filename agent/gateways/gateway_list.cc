#include "gateways/gateway_list.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <utility>

namespace persia::agent {
namespace {

// Each has a thread in each agent.
constexpr size_t kMostGateways = 64;
constexpr std::string_view kByName = "dns+";

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

bool IsNumeric(const std::string& host) {
  in_addr ipv4;
  return host.find(':') != std::string::npos || inet_pton(AF_INET, host.c_str(), &ipv4) == 1;
}

Result<GatewayEntry> ParseOne(std::string_view text) {
  const bool by_name = text.starts_with(kByName);
  Result<GatewayAddress> address = GatewayAddress::Parse(by_name ? text.substr(kByName.size()) : text);
  if (!address.ok()) return Error{address.error()};
  if (by_name && IsNumeric(address.value().host())) {
    return Error{"gateway address \"" + std::string(text) + "\": dns+ needs a name, and \"" + address.value().host() +
                 "\" is an address; leave dns+ out"};
  }
  return GatewayEntry{std::move(address).value(), by_name};
}

}  // namespace

Result<std::vector<GatewayEntry>> ParseGateways(std::string_view text) {
  // A password may have commas, and must not be in the error.
  if (text.find('@') != std::string_view::npos) return Error{GatewayAddress::Parse(text).error()};
  std::vector<GatewayEntry> gateways;
  const bool several = text.find(',') != std::string_view::npos;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    const std::string_view one = several ? Trimmed(text.substr(0, comma)) : text;
    if (several && one == "off") {
      return Error{"gateway address \"off\" must be the only one: it means that nothing is pushed"};
    }
    Result<GatewayEntry> entry = ParseOne(one);
    if (!entry.ok()) return Error{entry.error()};
    if (std::find(gateways.begin(), gateways.end(), entry.value()) != gateways.end()) {
      return Error{"gateway address \"" + std::string(one) + "\" is given twice; leave one out"};
    }
    gateways.push_back(std::move(entry).value());
    if (gateways.size() > kMostGateways) {
      return Error{"gateway address: there are more than " + std::to_string(kMostGateways) + " gateways"};
    }
    if (more) text.remove_prefix(comma + 1);
  }
  return gateways;
}

std::vector<std::string> NamesOf(const std::vector<GatewayAddress>& gateways) {
  std::map<std::string, size_t> sharing;
  for (const GatewayAddress& gateway : gateways) ++sharing[gateway.HostAndPort()];
  std::vector<std::string> names;
  for (const GatewayAddress& gateway : gateways) {
    names.push_back(sharing[gateway.HostAndPort()] > 1 ? gateway.Url() : gateway.HostAndPort());
  }
  return names;
}

}  // namespace persia::agent
