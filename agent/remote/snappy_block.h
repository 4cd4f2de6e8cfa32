// Snappy's block format, which remote write asks for (not the framed one). The adapter of libsnappy.
//
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace persia::agent {

// Replaces `out` by the block. Give the same string again: it keeps its memory.
void SnappyCompress(std::string_view data, std::string& out);
// Nothing if it is no block, or one that comes to more than `most` bytes.
[[nodiscard]] std::optional<std::string> SnappyUncompress(std::string_view block, size_t most);

}  // namespace persia::agent
