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

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"

namespace persia::agent {

// Ends a series in Prometheus. No value has these bits.
inline constexpr uint64_t kStaleMarker = 0x7ff0'0000'0000'0002;

// A series is known by its encoded labels, with this byte before them if its samples are native histograms. No label begins
// with it.
inline constexpr char kNativeMark = 0x22;
[[nodiscard]] inline bool IsNativeSeries(std::string_view series) { return series.starts_with(kNativeMark); }
[[nodiscard]] inline std::string_view LabelsOfSeries(std::string_view series) {
  return series.substr(IsNativeSeries(series) ? 1 : 0);
}

void AppendLabel(std::string& encoded, std::string_view name, std::string_view value);

class WriteRequest {
 public:
  // Adds one sample of one series. `labels`: from AppendLabel.
  void Add(std::string_view labels, uint64_t value_bits, int64_t timestamp_ms);
  // Adds one native histogram of one series. `counts`: as of ClassicCounts.
  void AddHistogram(std::string_view labels, const NativeBuckets& buckets, double sum, const double* counts,
                    int64_t timestamp_ms);
  // The same, without observations.
  void AddEmptyHistogram(std::string_view labels, const NativeBuckets& buckets, int64_t timestamp_ms);
  // Ends a series of native histograms: a histogram whose sum is the stale marker.
  void AddStaleHistogram(std::string_view labels, int64_t timestamp_ms);
  void Clear();

  [[nodiscard]] uint32_t samples() const { return samples_; }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  // Adds a series with this field and the timestamp, whose key is `timestamp_key`.
  void AddSeries(std::string_view labels, char key, std::string_view fields, char timestamp_key, int64_t timestamp_ms);

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
[[nodiscard]] std::optional<Halves> HalvesOf(std::string_view body);

// The metadata of families in a remote write 1.0 request: type, help and unit. Encoded by hand.
//
// Thread safety: pure functions.
struct MetadataRequest {
  std::string body{};  // before compression
  size_t families = 0;

  bool operator==(const MetadataRequest&) const = default;
};

// Requests of at most `max_families` families each. Families of one name count once.
[[nodiscard]] std::vector<MetadataRequest> EncodeMetadata(const Layout& layout, size_t max_families);

// Snappy's block format, which remote write requires (not the framed one). The adapter of libsnappy.
//
// Thread safety: any thread.

// Replaces `out` by the compressed block, and reuses its memory.
void SnappyCompress(std::string_view data, std::string& out);
// Nothing if it is no block, or has more than `max_bytes` of data.
[[nodiscard]] std::optional<std::string> SnappyUncompress(std::string_view block, size_t max_bytes);

}  // namespace persia::agent
