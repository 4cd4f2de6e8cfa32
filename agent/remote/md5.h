// MD5, by which Prometheus' action `hashmod` spreads series. The adapter of OpenSSL's libcrypto.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace persia::agent {

// The last 8 bytes of the hash, big endian. Nothing if OpenSSL is configured without MD5. Thread safety: any thread.
[[nodiscard]] std::optional<uint64_t> Md5Tail(std::string_view text);

}  // namespace persia::agent
