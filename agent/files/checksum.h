// CRC-32, to detect damaged files. The adapter of zlib's crc32.
#pragma once

#include <cstdint>
#include <string_view>

namespace persia::agent {

// Of `bytes` after other bytes, whose checksum is `before`.
[[nodiscard]] uint32_t Checksum(std::string_view bytes, uint32_t before = 0);

}  // namespace persia::agent
