// Reads the header by which a client says who it is: `Authorization: Basic dXNlcjpwYXNzd29yZA==` (RFC 7617).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace persia::agent {

struct BasicAuthorization {
  std::string user;
  std::string password;
};

// Nothing if the header's value is not of that kind, or not well formed.
std::optional<BasicAuthorization> ParseBasicAuthorization(std::string_view value);

}  // namespace persia::agent
