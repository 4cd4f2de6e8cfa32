#include "files/checksum.h"

#include <zlib.h>

namespace persia::agent {

uint32_t Checksum(std::string_view bytes, uint32_t before) {
  return static_cast<uint32_t>(crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace persia::agent
