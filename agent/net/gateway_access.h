// How a gateway knows us, and how we know it: credentials and TLS, as the settings give them and as one request needs them.
//
//   GatewayAccess access(options);
//   Result<GatewayAccess::Now> now = access.Read();   // before each request: files are read again when they have changed
//   now.value().authorization, now.value().ca ...
//   access.Redact(body);                              // what a peer sends back may hold what we sent
//
// Thread safety: none; one per sender.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/result.h"
#include "net/watched_file.h"

namespace persia::agent {

// As the settings have it; empty is not set. What contradicts itself is refused where settings are read.
struct GatewayAccessOptions {
  std::string ca_file{};    // PEM; empty: the system's
  std::string cert_file{};  // PEM, ours, with its chain
  std::string key_file{};   // PEM, without a passphrase
  // The name in the gateway's certificate, if it is not the one in the address.
  std::string server_name{};
  std::string username{};
  std::string password{};
  std::string password_file{};
  std::string bearer_token{};
  std::string bearer_token_file{};

  bool operator==(const GatewayAccessOptions&) const = default;
};

class GatewayAccess {
 public:
  // Contents, not names: a file that is replaced makes another one of these, and so another connection.
  struct Now {
    std::string ca;
    std::string cert;
    std::string key;
    std::string authorization;  // the header's value; empty if there is none
  };

  explicit GatewayAccess(GatewayAccessOptions options);

  // An error names the file that cannot be used, and never what stands in it.
  Result<Now> Read();
  // Replaces what is secret in `text`, in each form in which a peer may give it back, by ***.
  void Redact(std::string& text) const;
  [[nodiscard]] bool has_secrets() const { return !secrets_.empty(); }
  [[nodiscard]] const GatewayAccessOptions& options() const { return options_; }

 private:
  Status ReadAuthorization(Now& now);
  void Remember(const std::string& secret);

  const GatewayAccessOptions options_;
  std::optional<WatchedFile> ca_;
  std::optional<WatchedFile> cert_;
  std::optional<WatchedFile> key_;
  std::optional<WatchedFile> password_;
  std::optional<WatchedFile> token_;
  // Each secret sent lately, in each of its forms, longest first.
  std::vector<std::string> secrets_;
};

}  // namespace persia::agent
