// The settings of credentials and TLS towards the gateway: what each allows, and what they must not say together.
//
// What is secret is never quoted back, in no error and no print.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/options.h"
#include "model/result.h"

namespace persia::agent {

Status SetGatewayCaFile(std::string_view text, AgentOptions& options);
Status SetGatewayCertFile(std::string_view text, AgentOptions& options);
Status SetGatewayKeyFile(std::string_view text, AgentOptions& options);
Status SetGatewayServerName(std::string_view text, AgentOptions& options);
Status SetGatewayUsername(std::string_view text, AgentOptions& options);
Status SetGatewayPassword(std::string_view text, AgentOptions& options);
Status SetGatewayPasswordFile(std::string_view text, AgentOptions& options);
Status SetGatewayBearerToken(std::string_view text, AgentOptions& options);
Status SetGatewayBearerTokenFile(std::string_view text, AgentOptions& options);

// Contradictions, one line each. They may come from different places, so each names the settings and not a line of a file.
std::vector<std::string> CheckGatewayAccess(const AgentOptions& options);
// The same of any target's access, whose settings have names that begin with `prefix`. `url`: its address, the setting's name
// first; `has_tls`: whether it is one of https.
std::vector<std::string> CheckAccess(const GatewayAccessOptions& access, const std::string& prefix, bool has_tls,
                                     const std::string& url);

}  // namespace persia::agent
