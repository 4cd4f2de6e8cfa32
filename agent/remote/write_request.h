// Prometheus' remote write 1.0, the body of a request before compression: a protobuf message, written by hand.
//
// A series' labels are encoded once and kept; of a sample only its value is written anew. A value is given by its bits, since a
// stale marker is a signalling NaN, which may not survive being passed as a double.
//
// Thread safety: none.
//
//   std::string labels;
//   AppendLabel(labels, "__name__", "up");   // sorted by name, no name twice, no empty value
//   AppendLabel(labels, "job", "dlrm");
//   WriteRequest request;
//   request.Add(labels, std::bit_cast<uint64_t>(1.0), 1700000000000);
//   request.bytes()
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/snapshot.h"

namespace persia::agent {

// Ends a series: Prometheus shows it no longer. Not the bits of any NaN that is a value.
inline constexpr uint64_t kStaleMarker = 0x7ff0'0000'0000'0002;

void AppendLabel(std::string& encoded, std::string_view name, std::string_view value);
// What AppendLabel made, taken apart again. False: it made no such bytes.
[[nodiscard]] bool ParseLabels(std::string_view encoded, Labels& labels);

class WriteRequest {
 public:
  // One series of one sample. `labels`: as AppendLabel made them.
  void Add(std::string_view labels, uint64_t value_bits, int64_t timestamp_ms);
  void Clear();

  [[nodiscard]] uint32_t samples() const { return samples_; }
  [[nodiscard]] std::string_view bytes() const { return {buffer_.data(), size_}; }

 private:
  std::string buffer_;  // longer than what is in it, and never cleared: room is made rarely
  size_t size_ = 0;
  uint32_t samples_ = 0;
  std::string timestamp_;  // the field as it is written, for the next sample of the same time
  int64_t timestamp_of_ = -1;
};

}  // namespace persia::agent
