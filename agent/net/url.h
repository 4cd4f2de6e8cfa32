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
#include <string>
#include <string_view>

#include "base/result.h"

namespace persia::agent {

class Url {
 public:
  // An error is a clause about the text, which it does not quote: "the port is not a number from 1 to 65535".
  static Result<Url> Parse(std::string_view text);

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
  bool has_query_ = false;
  bool has_fragment_ = false;
};

// For errors about an address, with or without a scheme, valid or not: the text, or what Url::Shown leaves of it. Text of which
// it is not clear what may be secret becomes "***".
std::string ShownAddress(std::string_view text);

}  // namespace persia::agent
