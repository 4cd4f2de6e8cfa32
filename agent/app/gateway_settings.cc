#include "app/gateway_settings.h"

#include <algorithm>

#include "app/text.h"
#include "net/gateway_list.h"

namespace persia::agent {
namespace {

constexpr size_t kLongestSecret = 16384;

Status SetFile(std::string_view text, std::string& into) {
  if (Status status = CheckText(text, "a file's name"); !status.ok()) {
    return status;
  }
  into = text;
  return Done{};
}

// Its error tells nothing of the text.
Status SetSecret(std::string_view text, std::string& into) {
  const bool has_control =
      std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
  if (text.empty() || has_control || text.size() > kLongestSecret) {
    return Error{"is empty, longer than 16384 bytes or has control characters (it is not repeated here)"};
  }
  into = text;
  return Done{};
}

}  // namespace

Status SetGatewayCaFile(std::string_view text, AgentOptions& options) { return SetFile(text, options.gateway_access.ca_file); }
Status SetGatewayCertFile(std::string_view text, AgentOptions& options) {
  return SetFile(text, options.gateway_access.cert_file);
}
Status SetGatewayKeyFile(std::string_view text, AgentOptions& options) {
  return SetFile(text, options.gateway_access.key_file);
}
Status SetGatewayPasswordFile(std::string_view text, AgentOptions& options) {
  return SetFile(text, options.gateway_access.password_file);
}
Status SetGatewayBearerTokenFile(std::string_view text, AgentOptions& options) {
  return SetFile(text, options.gateway_access.bearer_token_file);
}
Status SetGatewayPassword(std::string_view text, AgentOptions& options) {
  return SetSecret(text, options.gateway_access.password);
}
Status SetGatewayBearerToken(std::string_view text, AgentOptions& options) {
  return SetSecret(text, options.gateway_access.bearer_token);
}

Status SetGatewayServerName(std::string_view text, AgentOptions& options) {
  const bool good = !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '-' || c == '.';
  });
  if (!good) {
    return Bad(text, "is not a host name or an IPv4 address as a certificate has it (without port)");
  }
  options.gateway_access.server_name = text;
  return Done{};
}

Status SetGatewayUsername(std::string_view text, AgentOptions& options) {
  if (Status status = CheckText(text, "a user's name"); !status.ok()) {
    return status;
  }
  if (text.find(':') != std::string_view::npos) {
    // Whoever writes "user:password" here must not find it in a log.
    return Error{"has a colon, which a user's name cannot have; the password belongs into gateway_password_file"};
  }
  options.gateway_access.username = text;
  return Done{};
}

std::vector<std::string> CheckAccess(const GatewayAccessOptions& access, const std::string& prefix, bool has_tls,
                                     const std::string& url) {
  std::vector<std::string> errors;
  const auto refuse = [&errors](bool wrong, const std::string& sentence) {
    if (wrong) {
      errors.push_back(sentence);
    }
  };
  const bool has_password = !access.password.empty() || !access.password_file.empty();
  const bool has_token = !access.bearer_token.empty() || !access.bearer_token_file.empty();
  const std::string& p = prefix;
  refuse(!access.password.empty() && !access.password_file.empty(),
         p + "password and " + p + "password_file are both set; leave one out");
  refuse(!access.bearer_token.empty() && !access.bearer_token_file.empty(),
         p + "bearer_token and " + p + "bearer_token_file are both set; leave one out");
  refuse(has_token && (has_password || !access.username.empty()),
         "both a bearer token and a user name or password are given (" + p + "bearer_token*, " + p + "username, " + p +
             "password*); a request has room for one of them");
  refuse(access.username.empty() && has_password,
         p + "password or " + p + "password_file is set, but " + p + "username is not");
  refuse(!access.username.empty() && !has_password,
         p + "username is set, but neither " + p + "password nor " + p + "password_file is");
  refuse(!access.cert_file.empty() && access.key_file.empty(), p + "cert_file is set, but " + p + "key_file is not");
  refuse(access.cert_file.empty() && !access.key_file.empty(), p + "key_file is set, but " + p + "cert_file is not");
  const bool wants_tls =
      !access.ca_file.empty() || !access.cert_file.empty() || !access.key_file.empty() || !access.server_name.empty();
  refuse(wants_tls && !has_tls, p + "ca_file, " + p + "cert_file, " + p + "key_file or " + p + "server_name is set, but " +
                                    url + " is one without TLS; give one of https://");
  return errors;
}

std::vector<std::string> CheckGatewayAccess(const AgentOptions& options) {
  const GatewayAccessOptions& access = options.gateway_access;
  std::vector<std::string> errors = CheckAccess(access, "gateway_", true, "");
  const bool wants_tls =
      !access.ca_file.empty() || !access.cert_file.empty() || !access.key_file.empty() || !access.server_name.empty();
  const auto gateways = ParseGateways(options.gateway_address);
  for (const auto& [gateway, by_name] : gateways.ok() ? gateways.value() : std::vector<GatewayEntry>()) {
    if (wants_tls && gateway.scheme() != "https") {
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
