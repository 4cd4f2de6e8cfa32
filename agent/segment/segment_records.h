// Checks and parses a segment's descriptor records.
//
// Descriptors are append-only and never rewritten, so each is parsed once, from a private copy. The grammar is in
// lib/segment_format.md. A record of an unknown type, a family of an unknown kind or policy, and a record that exceeds a limit
// of segment_format.h are skipped and counted, before any of their strings is copied; a malformed record ends the parsing with
// an error.
// Thread safety: pure functions, any thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/process_id.h"
#include "model/snapshot.h"
#include "segment_format.h"

namespace persia::agent {

// The identity of the writing process, from the newest identity record.
struct SegmentIdentity {
  std::string job = {};
  std::string run_id = {};
  std::string role = {};
  int32_t replica = 0;
  uint32_t restart_count = 0;
  Labels labels = {};  // sorted by name, no name twice

  [[nodiscard]] RankId rank() const { return {role, replica}; }
  friend bool operator==(const SegmentIdentity&, const SegmentIdentity&) = default;
};

// The library that writes the segment, from the newest writer record; empty without one.
struct SegmentWriterInfo {
  std::string language = {};
  std::string library_version = {};

  friend bool operator==(const SegmentWriterInfo&, const SegmentWriterInfo&) = default;
};

// As persia::metrics::GaugeMerge.
enum class GaugePolicy : uint8_t { kLast = 0, kSum = 1, kMin = 2, kMax = 3, kAvg = 4, kEach = 5 };

// A family of a segment. A skipped family (known: false) keeps its index, since series refer to families by index.
struct SegmentFamily {
  bool known = false;
  persia::metrics::segment::Kind kind{};  // of a clock: a counter, whose fraction is the time in seconds
  bool clock = false;
  GaugePolicy policy = GaugePolicy::kLast;
  std::vector<double> bounds;
  uint16_t max_buckets = 0;  // of a native histogram
  std::string group;
  std::string name;
  std::string help;
  std::string unit;
};

// A series of a segment. Its labels stay in the records.
struct SegmentSeriesRecord {
  uint32_t family = 0;  // of a known kind
  uint32_t slot = 0;
  uint32_t cells = 0;
  uint32_t labels = 0;
  size_t labels_at = 0;  // offset in the bytes of all records
  bool removed = false;  // as of the last Read of the segment
};

// The kinds whose families have bounds.
[[nodiscard]] bool HasBounds(persia::metrics::segment::Kind kind);
// Whether bounds are finite and ascending, and of a native histogram consecutive bounds of one schema.
[[nodiscard]] bool GoodBounds(persia::metrics::segment::Kind kind, std::span<const double> bounds);
// The schema of a native histogram. REQUIRES: GoodBounds.
[[nodiscard]] int NativeSchemaOf(std::span<const double> bounds);

// The result of parsing some records.
struct RecordBatch {
  static constexpr size_t kMaxOverLimit = 8;

  size_t max_series = persia::metrics::segment::kMaxSeries;  // set by the caller: how many more the segment may have
  std::optional<SegmentIdentity> identity = {};
  std::optional<SegmentWriterInfo> writer = {};
  bool forked = false;  // of `identity`: the process was forked by one of the same role and replica
  std::vector<SegmentFamily> families = {};
  std::vector<SegmentSeriesRecord> series = {};
  uint64_t skipped = 0;
  std::vector<std::string> over_limit = {};  // sentences on the first records that exceed a limit
};

// Parses the records in `all` from `at` on, and moves `at` to the first one that `all` does not hold whole. The segment's
// records end at `end`, which may lie beyond `all`. `families` are those of earlier records. On an error it returns false, sets
// `error`, and leaves `batch` in any state.
bool ParseRecords(std::span<const std::byte> all, size_t& at, size_t end, std::span<const SegmentFamily> families,
                  RecordBatch& batch, std::string& error);

// Calls `visit(name, value)` for each label of a series that was parsed from `all`.
template <class Visit>
void VisitLabels(std::span<const std::byte> all, const SegmentSeriesRecord& series, Visit visit);

// The string at `at`, whose bounds were checked by ParseRecords. Moves `at` past it.
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

// The series of a segment, and their values added over the process's threads.

// An index that a series of this kind does not have.
inline constexpr uint32_t kNoIndex = UINT32_MAX;

// A series, with its indexes into the arrays of SegmentValues.
struct SegmentSeries {
  SegmentSeriesRecord record;
  uint32_t whole = kNoIndex;  // its first cell: a counter's count; a histogram's sum, which its buckets follow
  uint32_t real =
      kNoIndex;  // a counter's fractions; the sum of a histogram or of an event's intervals; a stream's first of two
  uint32_t common = kNoIndex;  // a gauge's value, a stream's last value, an event's last timestamp
};

// The values of a segment, added up over its lanes.
struct SegmentValues {
  // A sum of doubles that is not added up yet: the first lane's value that is not zero, and a linked list of further ones.
  struct Real {
    double first = 0;
    uint32_t more = 0;  // index + 1 into `terms`; 0: none
  };
  struct Term {
    double value;
    uint32_t more;
  };

  std::vector<uint64_t> wholes;  // by slot; only cells that hold whole numbers are meaningful
  std::vector<Real> reals;
  std::vector<Term> terms;
  std::vector<uint64_t> commons;  // bits, as in the common lane
  uint64_t dropped[16] = {};

  // Whether two successive reads of one segment have the same values.
  [[nodiscard]] friend bool SameValues(const SegmentValues& a, const SegmentValues& b) {
    const auto same_real = [](const Real& x, const Real& y) { return Bits(x.first) == Bits(y.first) && x.more == y.more; };
    const auto same_term = [](const Term& x, const Term& y) { return Bits(x.value) == Bits(y.value) && x.more == y.more; };
    return a.wholes == b.wholes && a.commons == b.commons &&
           std::equal(a.reals.begin(), a.reals.end(), b.reals.begin(), b.reals.end(), same_real) &&
           std::equal(a.terms.begin(), a.terms.end(), b.terms.begin(), b.terms.end(), same_term);
  }

  static uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }

  // Appends the terms of a sum to `out`.
  void AppendTerms(uint32_t real, std::vector<double>& out) const {
    const Real& sum = reals[real];
    if (sum.first != 0) out.push_back(sum.first);
    for (uint32_t at = sum.more; at != 0; at = terms[at - 1].more) out.push_back(terms[at - 1].value);
  }

  // Replaces the terms of a sum. The former ones stay in `terms`, unused, until CompactTerms.
  void SetTerms(uint32_t real, std::span<const double> from) {
    Real& sum = reals[real];
    sum = {};
    const auto first = std::find_if(from.begin(), from.end(), [](double term) { return term != 0; });
    if (first == from.end()) return;
    sum.first = *first;
    // A chain starts with the term that was added last. Adding from the end keeps the order over encoding and decoding.
    for (auto at = from.end(); at != first + 1;) {
      terms.push_back({*--at, sum.more});
      sum.more = static_cast<uint32_t>(terms.size());
    }
  }

  // Drops unused terms if there are many.
  void CompactTerms() {
    constexpr size_t kMinTerms = 1024;  // with fewer, it does not pay
    if (terms.size() < kMinTerms + 2 * reals.size()) return;
    const std::vector<Term> former = std::exchange(terms, {});
    std::vector<double> chain;
    for (Real& sum : reals) {
      chain.clear();
      for (uint32_t at = sum.more; at != 0; at = former[at - 1].more) chain.push_back(former[at - 1].value);
      sum.more = 0;
      for (size_t i = chain.size(); i > 0; --i) {
        terms.push_back({chain[i - 1], sum.more});
        sum.more = static_cast<uint32_t>(terms.size());
      }
    }
  }
};

}  // namespace persia::agent
