// Parses the header `Authorization: Basic dXNlcjpwYXNzd29yZA==` (RFC 7617).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace persia::agent {

struct BasicAuthorization {
  std::string user;
  std::string password;
};

// Null if the header's value has another scheme or is malformed.
std::optional<BasicAuthorization> ParseBasicAuthorization(std::string_view value);

}  // namespace persia::agent
