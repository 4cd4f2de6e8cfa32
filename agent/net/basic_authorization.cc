#include "net/basic_authorization.h"

#include <strings.h>

#include "base/encoding.h"

namespace persia::agent {

std::optional<BasicAuthorization> ParseBasicAuthorization(std::string_view value) {
  static constexpr std::string_view kScheme = "Basic ";
  if (value.size() < kScheme.size() || strncasecmp(value.data(), kScheme.data(), kScheme.size()) != 0) return std::nullopt;
  value.remove_prefix(kScheme.size());
  while (value.starts_with(' ')) value.remove_prefix(1);
  const std::optional<std::string> pair = Base64Decode(value);
  const size_t colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos) return std::nullopt;
  return BasicAuthorization{pair->substr(0, colon), pair->substr(colon + 1)};
}

}  // namespace persia::agent
