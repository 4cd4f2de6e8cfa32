#include "net/listener_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <memory>

namespace persia::agent {
namespace {

Error Refused(const std::string& what, const std::string& file) {
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  return Error{what + " \"" + file + "\": " + (reason == nullptr ? "OpenSSL refuses it" : reason)};
}

}  // namespace

Status CheckFiles(const ListenerTls& tls) {
  ERR_clear_error();
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  if (!context) return Error{"OpenSSL cannot be initialized"};
  // The default callback would ask on the terminal.
  SSL_CTX_set_default_passwd_cb(context.get(), [](char*, int, int, void*) { return 0; });
  if (SSL_CTX_use_certificate_chain_file(context.get(), tls.cert_file.c_str()) != 1) {
    return Refused("cert_file", tls.cert_file);
  }
  // It also compares the key with the certificate.
  if (SSL_CTX_use_PrivateKey_file(context.get(), tls.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Refused("key_file", tls.key_file);
  }
  if (!tls.client_ca_file.empty() && SSL_CTX_load_verify_locations(context.get(), tls.client_ca_file.c_str(), nullptr) != 1) {
    return Refused("client_ca_file", tls.client_ca_file);
  }
  return Done{};
}

}  // namespace persia::agent
