// Grammar:
//
//   frame    magic:uint32 type:uint16 flags:uint16 payload_bytes:uint32 payload
//   number   its bytes, little-endian
//   array    count:uint32 element*
//   text     an array of bytes
#include "wire.h"

namespace embedding_job {

void CheckHeader(const FrameHeader& header) {
  if (header.magic != kFrameMagic) {
    throw WireError(
        "the peer does not speak our protocol: its frame begins with 0x" +
        [&] {
          constexpr char kDigits[] = "0123456789abcdef";
          std::string hex;
          for (int shift = 28; shift >= 0; shift -= 4) hex += kDigits[(header.magic >> shift) & 15];
          return hex;
        }());
  }
  if (header.type == 0 || header.type > kLastMessageType)
    throw WireError("a frame of unknown type " + std::to_string(header.type));
  if (header.payload_bytes > kMaxPayloadBytes) {
    throw WireError("a frame of " + std::to_string(header.payload_bytes) + " bytes; at most " +
                    std::to_string(kMaxPayloadBytes) + " are allowed");
  }
}

void PayloadWriter::CheckCount(size_t count, size_t size) {
  if (count > kMaxPayloadBytes / size)
    throw WireError("an array of " + std::to_string(count) + " elements does not fit into a frame: use smaller batches");
}

const std::byte* PayloadReader::Need(size_t count) {
  if (count > rest_.size()) {
    throw WireError("a payload ends early: " + std::to_string(count) + " bytes needed, " + std::to_string(rest_.size()) +
                    " left");
  }
  const std::byte* here = rest_.data();
  rest_ = rest_.subspan(count);
  return here;
}

void PayloadReader::End() const {
  if (!rest_.empty()) throw WireError(std::to_string(rest_.size()) + " bytes after the end of a payload");
}

}  // namespace embedding_job
