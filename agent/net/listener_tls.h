// TLS of the listener.
//
// Thread safety: plain data and a function without state.
#pragma once

#include <string>

#include "base/result.h"

namespace persia::agent {

struct ListenerTls {
  enum class ClientCert { kIgnore, kVerifyIfGiven, kRequire };
  enum class Version { k12, k13 };

  std::string cert_file{};  // PEM, with its chain
  std::string key_file{};   // PEM, without a passphrase
  // PEM: the CAs of client certificates.
  std::string client_ca_file{};
  ClientCert client_cert = ClientCert::kIgnore;
  Version min_version = Version::k12;

  bool operator==(const ListenerTls&) const = default;
};

// Reads the files as the server does. An error names the file and says why OpenSSL refuses it.
Status CheckFiles(const ListenerTls& tls);

}  // namespace persia::agent
