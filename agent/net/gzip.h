// Compresses request bodies. The adapter of zlib's deflate.
//
// Thread safety: none; one per sender.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace persia::agent {

class GzipCompressor {
 public:
  // 1 is the fastest of zlib's levels.
  explicit GzipCompressor(int level = 1);
  ~GzipCompressor();
  GzipCompressor(const GzipCompressor&) = delete;
  GzipCompressor& operator=(const GzipCompressor&) = delete;

  // Replaces `out` by `data` as one gzip member. Pass the same string again: its memory is reused.
  Status Compress(std::string_view data, std::string& out);

 private:
  class Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace persia::agent
