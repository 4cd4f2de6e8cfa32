#include "net/gzip.h"

#include <zlib.h>

#include <limits>

namespace persia::agent {

class GzipCompressor::Stream {
 public:
  explicit Stream(int level) {
    constexpr int kGzipWindow = 15 + 16;  // the largest window; 16 asks for a gzip header instead of zlib's own
    constexpr int kMemory = 8;            // zlib's default
    ready_ = deflateInit2(&stream_, level, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) == Z_OK;
  }
  ~Stream() { deflateEnd(&stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Status Compress(std::string_view data, std::string& out) {
    if (!ready_ || deflateReset(&stream_) != Z_OK) return Error{"gzip: out of memory"};
    if (data.size() > std::numeric_limits<uInt>::max())
      return Error{"gzip: " + std::to_string(data.size()) + " bytes are too many to compress at once"};
    out.resize(deflateBound(&stream_, data.size()));
    // zlib does not write to its input, although the pointer is not const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    stream_.avail_in = static_cast<uInt>(data.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    if (deflate(&stream_, Z_FINISH) != Z_STREAM_END) return Error{"gzip: compression failed"};
    out.resize(out.size() - stream_.avail_out);
    return Done{};
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

GzipCompressor::GzipCompressor(int level) : stream_(std::make_unique<Stream>(level)) {}
GzipCompressor::~GzipCompressor() = default;

Status GzipCompressor::Compress(std::string_view data, std::string& out) { return stream_->Compress(data, out); }

}  // namespace persia::agent
