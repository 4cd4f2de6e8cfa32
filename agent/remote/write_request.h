// The body of a remote write 1.0 request before compression: a protobuf message, encoded by hand.
//
// The labels of a series are encoded once and kept; only its value and time are encoded for each sample. A value is passed as
// its bits: a stale marker is a signalling NaN, which a double may not preserve.
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

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace persia::agent {

// Ends a series in Prometheus. No value has these bits.
inline constexpr uint64_t kStaleMarker = 0x7ff0'0000'0000'0002;

void AppendLabel(std::string& encoded, std::string_view name, std::string_view value);

class WriteRequest {
 public:
  // Adds one sample of one series. `labels`: from AppendLabel.
  void Add(std::string_view labels, uint64_t value_bits, int64_t timestamp_ms);
  void Clear();

  [[nodiscard]] uint32_t samples() const { return samples_; }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  uint32_t samples_ = 0;
  std::string timestamp_;  // the encoded field, kept for the next sample of the same time
  int64_t timestamp_of_ = -1;
};

// How many time series a body has before compression. REQUIRES: WriteRequest made it.
[[nodiscard]] uint32_t SeriesIn(std::string_view body);
// The first and the second half of the time series of a body. Nothing if it has fewer than two. REQUIRES: WriteRequest made it.
struct Halves {
  std::string_view first, second;
};
[[nodiscard]] std::optional<Halves> Halve(std::string_view body);

}  // namespace persia::agent
