// CRC-32, to detect damaged files. The adapter of zlib's crc32.
#pragma once

#include <cstdint>
#include <string_view>

namespace persia::agent {

[[nodiscard]] uint32_t Checksum(std::string_view bytes);

}  // namespace persia::agent
