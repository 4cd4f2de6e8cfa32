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

// The certificates of `cert_file` and the key of `key_file` in one text: the server's own certificate, its chain, the key. An
// error names the file and says why OpenSSL refuses it.
Result<std::string> ReadPem(const ListenerTls& tls);
// As ReadPem, and for the file of client CAs.
Status CheckFiles(const ListenerTls& tls);

}  // namespace persia::agent
