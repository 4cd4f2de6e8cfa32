// Snappy's block format, which remote write requires (not the framed one). The adapter of libsnappy.
//
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace persia::agent {

// Replaces `out` by the compressed block, and reuses its memory.
void SnappyCompress(std::string_view data, std::string& out);
// Nothing if it is no block, or has more than `max_bytes` of data.
[[nodiscard]] std::optional<std::string> SnappyUncompress(std::string_view block, size_t max_bytes);

}  // namespace persia::agent
