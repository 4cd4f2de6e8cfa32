// An absolute http or https URL, parsed by libcurl: every part of the agent reads and shows an address in the same way.
//
//   Result<Url> url = Url::Parse("http://alice:secret@db:8428/api/v1/write?token=secret");
//   url.value().HostAndPort();   // "db:8428"
//   url.value().Shown();         // "http://db:8428/api/v1/write?..."
//
// Thread safety: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace persia::agent {

class Url {
 public:
  static constexpr std::string_view kHttp[] = {"http", "https"};
  // `schemes`: those allowed. An error is a clause about the text, which it does not quote: "the port is not a number from 1 to
  // 65535".
  static Result<Url> Parse(std::string_view text, std::span<const std::string_view> schemes = kHttp);

  // In lower case.
  [[nodiscard]] const std::string& scheme() const { return scheme_; }
  // Without the brackets of an IPv6 address. An IPv4 address has four decimal parts, even if it was written in another form.
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] bool IsIpv6() const { return host_.find(':') != std::string::npos; }
  // Null if the text has none.
  [[nodiscard]] std::optional<uint16_t> port() const { return port_; }
  // That of the scheme if the text has none.
  [[nodiscard]] uint16_t PortOrDefault() const { return port_.value_or(scheme_ == "https" ? 443 : 80); }
  // As written; "/" if the text has none.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool has_user() const { return has_user_; }  // or a password
  [[nodiscard]] bool has_query() const { return has_query_; }
  [[nodiscard]] bool has_fragment() const { return has_fragment_; }

  // What a peer may repeat of a secret query: the query, and the value of each parameter, as written and decoded.
  [[nodiscard]] std::vector<std::string> QuerySecrets() const;
  // The same of user and password: the password, and both as a peer gets them by basic authorization.
  [[nodiscard]] std::vector<std::string> UserSecrets() const;

  // "host:port" or "[::1]:port"; without the port if the text has none.
  [[nodiscard]] std::string HostAndPort() const;
  // "scheme://host:port", always with the port.
  [[nodiscard]] std::string Origin() const;
  // For people: without user, password, query and fragment, which may be secret. "?..." marks a query.
  [[nodiscard]] std::string Shown() const;

 private:
  std::string scheme_;
  std::string host_;
  std::optional<uint16_t> port_;
  std::string path_;
  bool has_user_ = false;
  std::string user_;      // as written
  std::string password_;  // as written
  bool has_query_ = false;
  std::string query_;  // as written
  bool has_fragment_ = false;
};

// For errors about an address, with or without a scheme, valid or not: the text, or what Url::Shown leaves of it. Text of which
// it is not clear what may be secret becomes "***".
std::string ShownAddress(std::string_view text);

}  // namespace persia::agent
