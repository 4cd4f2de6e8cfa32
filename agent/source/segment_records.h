// A segment's descriptor records, checked and taken apart.
//
// Descriptors are append-only and never rewritten, so each is parsed once, from a private copy. The grammar is in
// lib/segment_format.md. A record of a type that this version does not know, or a family of a kind or policy that it does not
// know, is skipped and counted; one that contradicts the grammar ends the parsing with an error.
// Thread safety: a pure function, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"
#include "segment_format.h"

namespace persia::agent {

// Who writes a segment: its newest identity record.
struct SegmentIdentity {
  std::string job = {};
  std::string run_id = {};
  std::string role = {};
  int32_t replica = 0;
  uint32_t restart_count = 0;
  Labels labels = {};  // sorted by name, no name twice

  friend bool operator==(const SegmentIdentity&, const SegmentIdentity&) = default;
};

// What writes a segment: its newest writer record. Libraries before 1.1 of the format do not say.
struct SegmentWriterInfo {
  std::string language = {};
  std::string library_version = {};

  friend bool operator==(const SegmentWriterInfo&, const SegmentWriterInfo&) = default;
};

// As persia::metrics::GaugeMerge.
enum class GaugePolicy : uint8_t { kLast = 0, kSum = 1, kMin = 2, kMax = 3, kAvg = 4, kEach = 5 };

// A family of a segment. A family that was skipped keeps its number, since series name families by it.
struct SegmentFamily {
  bool known = false;
  persia::metrics::segment::Kind kind{};
  GaugePolicy policy = GaugePolicy::kLast;
  std::vector<double> bounds;
  std::string group;
  std::string name;
  std::string help;
  std::string unit;
};

// A series of a segment, with its labels still in the records.
struct SegmentSeriesRecord {
  uint32_t family = 0;  // known
  uint32_t slot = 0;
  uint32_t cells = 0;
  uint32_t labels = 0;
  size_t labels_at = 0;  // in the bytes of all records so far
};

// What a run of records adds.
struct RecordBatch {
  std::optional<SegmentIdentity> identity;
  std::optional<SegmentWriterInfo> writer;
  std::vector<SegmentFamily> families;
  std::vector<SegmentSeriesRecord> series;
  uint64_t skipped = 0;
};

// Parses the records in `all` from `begin` on. `families`: those of the records before. On an error the answer is false and
// `error` says where and what; `batch` is then in any state.
bool ParseRecords(std::span<const std::byte> all, size_t begin, std::span<const SegmentFamily> families, RecordBatch& batch,
                  std::string& error);

// Calls `visit(name, value)` for each label of a series that was parsed from `all`.
template <class Visit>
void VisitLabels(std::span<const std::byte> all, const SegmentSeriesRecord& series, Visit visit);

// One string of the records, whose bounds were checked when it was parsed. Moves `at` behind it.
std::string_view CheckedString(std::span<const std::byte> all, size_t& at);

template <class Visit>
void VisitLabels(std::span<const std::byte> all, const SegmentSeriesRecord& series, Visit visit) {
  size_t at = series.labels_at;
  for (uint32_t i = 0; i < series.labels; ++i) {
    const std::string_view name = CheckedString(all, at);
    const std::string_view value = CheckedString(all, at);
    visit(name, value);
  }
}

}  // namespace persia::agent
