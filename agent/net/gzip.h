// Compresses the bodies of pushes. The adapter of zlib.
//
// Thread safety: none; one per sender.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "model/result.h"

namespace persia::agent {

class GzipCompressor {
 public:
  // 1 is the fastest of zlib's levels.
  explicit GzipCompressor(int level = 1);
  ~GzipCompressor();
  GzipCompressor(const GzipCompressor&) = delete;
  GzipCompressor& operator=(const GzipCompressor&) = delete;

  // Replaces `out` by one gzip member that holds `data`. Give the same string again: it keeps its memory.
  Status Compress(std::string_view data, std::string& out);

 private:
  class Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace persia::agent
