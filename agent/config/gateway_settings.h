// Contradictions between the settings of credentials and TLS. No error quotes a secret.
#pragma once

#include <string>
#include <vector>

#include "config/options.h"

namespace persia::agent {

// For the gateway: one line each, which names the settings, since their values may come from different sources.
std::vector<std::string> CheckGatewayAccess(const AgentOptions& options);

// For any target. `prefix` begins the names of its settings. `has_tls`: its URL is one of https. `url` is the name and value of
// the setting with the URL.
std::vector<std::string> CheckAccess(const GatewayAccessOptions& access, const std::string& prefix, bool has_tls,
                                     const std::string& url);

}  // namespace persia::agent
