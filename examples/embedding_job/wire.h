// Frames and their bytes.
//
// A frame is a header of 12 bytes and a payload. Numbers are little-endian; an array is its length as a uint32 and its
// elements. A frame that breaks the grammar, or whose payload is too short, too long, or has a wrong array length, is a
// WireError, and nothing of it is used. Thread safety: one thread at a time.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "job_error.h"

namespace embedding_job {

static_assert(std::endian::native == std::endian::little, "the wire format is the memory of a little-endian host");

class WireError : public JobError {
 public:
  using JobError::JobError;
};

// The type of a request or an answer. The payloads are in messages.h.
enum class MessageType : uint16_t {
  kHello = 1,
  kAck,
  kError,           // the text is the error
  kBatch,           // data loader -> embedding worker
  kEndOfData,       // data loader -> embedding worker; the answer to kNextBatch when there is none
  kNextBatch,       // trainer -> embedding worker
  kEmbeddings,      // the answer to kNextBatch
  kGradients,       // trainer -> embedding worker
  kLookup,          // embedding worker -> embedding server
  kRows,            // the answer to kLookup
  kUpdate,          // embedding worker -> embedding server
  kCheckpoint,      // trainer -> embedding worker -> embedding server
  kCheckpointDone,  // the answer to kCheckpoint
  kGoodbye,         // no answer: the connection ends
};
inline constexpr uint16_t kLastMessageType = static_cast<uint16_t>(MessageType::kGoodbye);

struct FrameHeader {
  uint32_t magic;
  uint16_t type;
  uint16_t flags;
  uint32_t payload_bytes;
};
static_assert(sizeof(FrameHeader) == 12);
inline constexpr uint32_t kFrameMagic = 0x31424d45;  // "EMB1"
inline constexpr uint16_t kStopping = 1;             // flag: the sender has been asked to stop
inline constexpr uint32_t kMaxPayloadBytes = 256U << 20;

struct Frame {
  MessageType type = MessageType::kAck;
  std::vector<std::byte> payload = {};
};

// Throws WireError if the bytes are not a header of this protocol.
void CheckHeader(const FrameHeader& header);

// Builds a payload.
class PayloadWriter {
 public:
  template <class T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    Bytes(&value, sizeof(value));
  }
  template <class T>
  void Array(std::span<const T> values) {
    static_assert(std::is_arithmetic_v<T>);
    CheckCount(values.size(), sizeof(T));
    Number(static_cast<uint32_t>(values.size()));
    Bytes(values.data(), values.size_bytes());
  }
  template <class T>
  void Array(const std::vector<T>& values) {
    Array(std::span<const T>(values));
  }
  void Text(std::string_view text) { Array(std::span<const char>(text)); }

  [[nodiscard]] std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  static void CheckCount(size_t count, size_t size);
  void Bytes(const void* from, size_t count) {
    const auto* bytes = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), bytes, bytes + count);
  }

  std::vector<std::byte> bytes_;
};

// Reads a payload, which must outlive it.
class PayloadReader {
 public:
  explicit PayloadReader(std::span<const std::byte> payload) : rest_(payload) {}

  template <class T>
  T Number() {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, Need(sizeof(T)), sizeof(T));
    return value;
  }
  template <class T>
  std::vector<T> Array() {
    static_assert(std::is_arithmetic_v<T>);
    const size_t count = Number<uint32_t>();
    // Checked before any memory is allocated.
    const std::byte* bytes = Need(count * sizeof(T));
    std::vector<T> values(count);
    if (count != 0) std::memcpy(values.data(), bytes, count * sizeof(T));
    return values;
  }
  std::string Text() {
    const std::vector<char> chars = Array<char>();
    return {chars.begin(), chars.end()};
  }
  // Throws WireError if bytes are left.
  void End() const;

 private:
  // The next `count` bytes.
  const std::byte* Need(size_t count);

  std::span<const std::byte> rest_;
};

}  // namespace embedding_job
