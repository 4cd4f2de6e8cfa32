// CRC-32, by which it is seen that bytes on disk are not those that were written. The adapter of zlib's.
#pragma once

#include <cstdint>
#include <string_view>

namespace persia::agent {

[[nodiscard]] uint32_t Checksum(std::string_view bytes);

}  // namespace persia::agent
