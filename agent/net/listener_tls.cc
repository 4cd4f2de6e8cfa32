#include "net/listener_tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <utility>

namespace persia::agent {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

// The default callback would ask for the passphrase on the terminal.
int NoPassphrase(char*, int, int, void*) { return 0; }

Error Refused(const std::string& what, const std::string& file) {
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  return Error{what + " \"" + file + "\": " + (reason == nullptr ? "OpenSSL refuses it" : reason)};
}

// Appends the certificates of a file. Returns the first one; null: OpenSSL's error says why.
Certificate AppendCertificates(const std::string& file, BIO* to) {
  const Bio from(BIO_new_file(file.c_str(), "r"));
  Certificate first;
  while (from != nullptr) {
    Certificate next(PEM_read_bio_X509(from.get(), nullptr, NoPassphrase, nullptr));
    if (next == nullptr) break;
    PEM_write_bio_X509(to, next.get());
    if (first == nullptr) first = std::move(next);
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE && first != nullptr)
    ERR_clear_error();  // the end of the file
  return ERR_peek_error() == 0 ? std::move(first) : nullptr;
}

}  // namespace

Result<std::string> ReadPem(const ListenerTls& tls) {
  ERR_clear_error();
  const Bio pem(BIO_new(BIO_s_mem()));
  if (pem == nullptr) return Error{"no memory for the certificate"};
  const Certificate certificate = AppendCertificates(tls.cert_file, pem.get());
  if (certificate == nullptr) return Refused("cert_file", tls.cert_file);
  const Bio from(BIO_new_file(tls.key_file.c_str(), "r"));
  const Key key(from == nullptr ? nullptr : PEM_read_bio_PrivateKey(from.get(), nullptr, NoPassphrase, nullptr));
  if (key == nullptr) {
    const char* const reason = ERR_reason_error_string(ERR_peek_error());
    return Error{"key_file \"" + tls.key_file + "\": has no private key without a passphrase (" +
                 (reason == nullptr ? "OpenSSL refuses it" : reason) + ")"};
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1)
    return Error{"key_file \"" + tls.key_file + "\": is not the key of the first certificate in cert_file"};
  PEM_write_bio_PrivateKey(pem.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  const char* text = nullptr;
  const long size = BIO_get_mem_data(pem.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

Status CheckFiles(const ListenerTls& tls) {
  if (const Result<std::string> pem = ReadPem(tls); !pem.ok()) return Error{pem.error()};
  if (tls.client_ca_file.empty()) return Done{};
  const std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr || SSL_CTX_load_verify_locations(context.get(), tls.client_ca_file.c_str(), nullptr) != 1)
    return Refused("client_ca_file", tls.client_ca_file);
  return Done{};
}

}  // namespace persia::agent
