// Reads the file of `web_config_file`: users and TLS settings of the pages, in the format of Prometheus's exporters.
//
//   basic_auth_users:
//     prometheus: $2y$10$...          # a bcrypt hash, by `htpasswd -nBC 10 prometheus`
//   tls_server_config:
//     cert_file: server.pem           # names are relative to this file
//     key_file: server.key
//     client_ca_file: clients.pem
//     client_auth_type: RequireAndVerifyClientCert
//     min_version: TLS12
//
// No error quotes a hash.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "net/http_server.h"

namespace persia::agent {

struct WebConfig {
  // Names and bcrypt hashes. Empty: no password is needed.
  std::map<std::string, std::string> users;
  std::optional<ListenerTls> tls;
  // One line each, "path:line:column: what".
  std::vector<std::string> errors;
};

// Whether the files of TLS are read and checked.
enum class TlsFiles : uint8_t { kCheck, kLeave };

// Relative names in the file are relative to the folder of `path`. `why_no_tls` returns why TLS is not available, or nothing.
WebConfig ParseWebConfig(const std::string& path, const std::string& text, TlsFiles tls_files = TlsFiles::kCheck,
                         const std::function<std::string()>& why_no_tls = HttpServer::WhyNoTls);

WebConfig ReadWebConfig(const std::string& path);

}  // namespace persia::agent
