// The credentials and TLS files of a gateway, from the settings and as a request needs them.
//
//   GatewayAccess access(options);
//   Result<GatewayAccess::Credentials> now = access.Read();   // before each request: changed files are read again
//   now.value().authorization, now.value().ca ...
//   access.Redact(body);                                      // a response may contain the secrets that were sent
//
// Thread safety: none; one per sender.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "files/small_file.h"

namespace persia::agent {

enum class TlsVersion : uint8_t { kDefault, k10, k11, k12, k13 };

// Empty: not set. REQUIRES: no contradictions; they are refused where settings are read.
struct GatewayAccessOptions {
  std::string ca_file{};    // PEM; empty: the system's CAs
  std::string cert_file{};  // PEM, the client certificate with its chain
  std::string key_file{};   // PEM, without a passphrase
  // The contents, instead of files.
  std::string ca{};
  std::string cert{};
  std::string key{};
  // The name in the gateway's certificate, if it differs from the host in the address.
  std::string server_name{};
  bool insecure_skip_verify = false;  // accepts any certificate
  TlsVersion min_version = TlsVersion::kDefault;
  TlsVersion max_version = TlsVersion::kDefault;
  std::string username{};
  std::string username_file{};
  std::string password{};
  std::string password_file{};
  std::string bearer_token{};
  std::string bearer_token_file{};
  std::string token_type = "Bearer";  // before the token in the header

  bool operator==(const GatewayAccessOptions&) const = default;
};

class GatewayAccess {
 public:
  // The contents of the files, not their names: libcurl makes a new connection when they change.
  struct Credentials {
    std::string ca;
    std::string cert;
    std::string key;
    std::string authorization;  // the header's value; empty if there is none
  };

  explicit GatewayAccess(GatewayAccessOptions options);

  // An error names the file that cannot be used, and never quotes its content.
  Result<Credentials> Read();
  // From now on Redact replaces this text too. One of fewer than four bytes is no secret, and would make other text unreadable.
  void Hide(const std::string& secret);
  // Replaces secrets in `text` by ***, in every form in which a peer may return them.
  void Redact(std::string& text) const;
  [[nodiscard]] bool has_secrets() const { return !secrets_.empty() || !hidden_.empty(); }
  [[nodiscard]] const GatewayAccessOptions& options() const { return options_; }

 private:
  Status ReadAuthorization(Credentials& now);
  void Remember(const std::string& secret);

  const GatewayAccessOptions options_;
  std::optional<WatchedFile> ca_;
  std::optional<WatchedFile> cert_;
  std::optional<WatchedFile> key_;
  std::optional<WatchedFile> username_;
  std::optional<WatchedFile> password_;
  std::optional<WatchedFile> token_;
  // The secrets sent recently, in all forms, newest first.
  std::vector<std::string> secrets_;
  std::vector<std::string> hidden_;  // by Hide, in all forms
};

}  // namespace persia::agent
