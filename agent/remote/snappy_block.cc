#include "remote/snappy_block.h"

#include <snappy.h>

namespace persia::agent {
namespace {

// A copy of 64 bytes takes 3 bytes of a block. The length that a block claims is allocated before it is checked.
constexpr size_t kMaxRatio = 64;

}  // namespace

void SnappyCompress(std::string_view data, std::string& out) { snappy::Compress(data.data(), data.size(), &out); }

std::optional<std::string> SnappyUncompress(std::string_view block, size_t max_bytes) {
  size_t size = 0;
  std::string out;
  if (!snappy::GetUncompressedLength(block.data(), block.size(), &size) || size > max_bytes ||
      size / kMaxRatio > block.size() || !snappy::Uncompress(block.data(), block.size(), &out)) {
    return std::nullopt;
  }
  return out;
}

}  // namespace persia::agent
