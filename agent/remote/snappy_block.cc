#include "remote/snappy_block.h"

#include <snappy.h>

namespace persia::agent {

void SnappyCompress(std::string_view data, std::string& out) { snappy::Compress(data.data(), data.size(), &out); }

std::optional<std::string> SnappyUncompress(std::string_view block, size_t most) {
  size_t size = 0;
  std::string out;
  if (!snappy::GetUncompressedLength(block.data(), block.size(), &size) || size > most ||
      !snappy::Uncompress(block.data(), block.size(), &out)) {
    return std::nullopt;
  }
  return out;
}

}  // namespace persia::agent
