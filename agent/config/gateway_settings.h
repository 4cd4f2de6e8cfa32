// Contradictions between the settings of the gateway's credentials, TLS and proxy. No error quotes a secret.
#pragma once

#include <string>
#include <vector>

#include "config/options.h"

namespace persia::agent {

// One line each, which names the settings, since their values may come from different sources.
std::vector<std::string> CheckGatewayAccess(const AgentOptions& options);

}  // namespace persia::agent
