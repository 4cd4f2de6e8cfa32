#include "config/gateway_settings.h"

#include "base/text.h"
#include "gateways/gateway_list.h"

namespace persia::agent {
namespace {

bool HasTlsSettings(const GatewayAccessOptions& access) {
  return !access.ca_file.empty() || !access.cert_file.empty() || !access.key_file.empty() || !access.server_name.empty();
}

}  // namespace

std::vector<std::string> CheckAccess(const GatewayAccessOptions& access, const std::string& prefix, bool has_tls,
                                     const std::string& url) {
  std::vector<std::string> errors;
  const auto refuse_if = [&errors](bool wrong, const std::string& sentence) {
    if (wrong) {
      errors.push_back(sentence);
    }
  };
  const bool has_password = !access.password.empty() || !access.password_file.empty();
  const bool has_token = !access.bearer_token.empty() || !access.bearer_token_file.empty();
  const std::string& p = prefix;
  refuse_if(!access.password.empty() && !access.password_file.empty(),
            p + "password and " + p + "password_file are both set; leave one out");
  refuse_if(!access.bearer_token.empty() && !access.bearer_token_file.empty(),
            p + "bearer_token and " + p + "bearer_token_file are both set; leave one out");
  refuse_if(has_token && (has_password || !access.username.empty()),
            "both a bearer token and a user name or password are given (" + p + "bearer_token*, " + p + "username, " + p +
                "password*); a request can carry only one of them");
  refuse_if(access.username.empty() && has_password,
            p + "password or " + p + "password_file is set, but " + p + "username is not");
  refuse_if(!access.username.empty() && !has_password,
            p + "username is set, but neither " + p + "password nor " + p + "password_file is");
  refuse_if(!access.cert_file.empty() && access.key_file.empty(), p + "cert_file is set, but " + p + "key_file is not");
  refuse_if(access.cert_file.empty() && !access.key_file.empty(), p + "key_file is set, but " + p + "cert_file is not");
  refuse_if(HasTlsSettings(access) && !has_tls, p + "ca_file, " + p + "cert_file, " + p + "key_file or " + p +
                                                    "server_name is set, but " + url +
                                                    " is one without TLS; give one of https://");
  return errors;
}

std::vector<std::string> CheckGatewayAccess(const AgentOptions& options) {
  const auto gateways = ParseGateways(options.gateway_address);
  std::vector<std::string> errors = CheckAccess(options.gateway_access, "gateway_", true, "");
  if (!gateways.ok() || !HasTlsSettings(options.gateway_access)) return errors;
  for (const auto& [gateway, by_name] : gateways.value()) {
    if (gateway.scheme() != "https") {
      errors.push_back(
          "gateway_ca_file, gateway_cert_file, gateway_key_file or gateway_server_name is set, but gateway_address " +
          Quoted(options.gateway_address) + (gateways.value().size() > 1 ? " has one without TLS" : " is one without TLS") +
          "; give " + (by_name ? "dns+https://" : "https://") + gateway.HostAndPort() + gateway.path_prefix());
      break;
    }
  }
  return errors;
}

}  // namespace persia::agent
