// Bytes as text: hexadecimal, Base64 (RFC 4648), percent-encoding (RFC 3986).
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace persia::agent {

// Two lower-case digits for each byte.
std::string HexEncode(std::string_view bytes);

// With padding.
std::string Base64Encode(std::string_view bytes);
// The alphabet for URLs ("-" and "_"), without padding.
std::string Base64UrlEncode(std::string_view bytes);
// Takes the standard alphabet, with or without padding. Null if `text` is invalid.
std::optional<std::string> Base64Decode(std::string_view text);

// Encodes all bytes but letters, digits and "-._~": for a segment of a path, or a value in a query.
std::string PercentEncode(std::string_view bytes);

}  // namespace persia::agent
