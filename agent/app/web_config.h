// Reads the file of `web_config_file`: who may read our pages, and TLS for them; the format of Prometheus's exporters.
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
// No hash stands in any error.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "net/http_server.h"

namespace persia::agent {

struct WebConfig {
  // Names and bcrypt hashes; empty: everybody may.
  std::map<std::string, std::string> users;
  std::optional<ListenerTls> tls;
  // One line each, with its place.
  std::vector<std::string> errors;
};

// `path` begins each error and is where relative names begin; `why_no_tls` says why TLS cannot be had, or nothing.
WebConfig ParseWebConfig(const std::string& path, const std::string& text,
                         const std::function<std::string()>& why_no_tls = HttpServer::WhyNoTls);

WebConfig ReadWebConfig(const std::string& path);

}  // namespace persia::agent
