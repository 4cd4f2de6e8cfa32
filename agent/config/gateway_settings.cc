#include "config/gateway_settings.h"

#include "base/text.h"
#include "net/gateway_address.h"

namespace persia::agent {
namespace {

bool HasTlsSettings(const GatewayAccessOptions& access) {
  return !access.ca_file.empty() || !access.cert_file.empty() || !access.key_file.empty() || !access.server_name.empty();
}

std::vector<std::string> CheckAccess(const GatewayAccessOptions& access) {
  std::vector<std::string> errors;
  const auto refuse_if = [&errors](bool wrong, const std::string& sentence) {
    if (wrong) {
      errors.push_back(sentence);
    }
  };
  const bool has_password = !access.password.empty() || !access.password_file.empty();
  const bool has_token = !access.bearer_token.empty() || !access.bearer_token_file.empty();
  refuse_if(!access.password.empty() && !access.password_file.empty(),
            "gateway_password and gateway_password_file are both set; leave one out");
  refuse_if(!access.bearer_token.empty() && !access.bearer_token_file.empty(),
            "gateway_bearer_token and gateway_bearer_token_file are both set; leave one out");
  refuse_if(has_token && (has_password || !access.username.empty()),
            "both a bearer token and a user name or password are given (gateway_bearer_token*, gateway_username, "
            "gateway_password*); a request can carry only one of them");
  refuse_if(access.username.empty() && has_password,
            "gateway_password or gateway_password_file is set, but gateway_username is not");
  refuse_if(!access.username.empty() && !has_password,
            "gateway_username is set, but neither gateway_password nor gateway_password_file is");
  refuse_if(!access.cert_file.empty() && access.key_file.empty(), "gateway_cert_file is set, but gateway_key_file is not");
  refuse_if(access.cert_file.empty() && !access.key_file.empty(), "gateway_key_file is set, but gateway_cert_file is not");
  return errors;
}

void CheckGatewayProxy(const ProxySettings& proxy, std::vector<std::string>& errors) {
  if (proxy.from_environment && !proxy.url.empty()) {
    errors.emplace_back("gateway_proxy_from_environment and gateway_proxy_url are both set; leave one out");
  }
}

}  // namespace

std::vector<std::string> CheckGatewayAccess(const AgentOptions& options) {
  const auto gateway = GatewayAddress::Parse(options.gateway_address);
  std::vector<std::string> errors = CheckAccess(options.gateway_access);
  CheckGatewayProxy(options.gateway_proxy, errors);
  if (gateway.ok() && gateway.value().scheme() != "https" && HasTlsSettings(options.gateway_access)) {
    errors.push_back(
        "gateway_ca_file, gateway_cert_file, gateway_key_file or gateway_server_name is set, but gateway_address " +
        Quoted(options.gateway_address) + " is one without TLS; give https://" + gateway.value().HostAndPort() +
        gateway.value().path_prefix());
  }
  return errors;
}

}  // namespace persia::agent
