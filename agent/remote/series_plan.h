// The series that a layout has in remote write, and how a snapshot's values map to them.
//
// If the target takes native histograms, a native histogram is one series; else, and with `classic`, it becomes what follows.
// A classic histogram becomes `_bucket` with `le`, `_sum` and `_count`, a summary its quantiles, `_sum` and `_count`, with the
// names and labels that a scrape gives. Relabelling happens here, once per layout.
//
// Thread safety: immutable once constructed.
//
//   SeriesPlan plan(*snapshot.layout, rules);
//   plan.Values(snapshot.values, bits);   // bits[i] is the value of plan.series().labels(i); kAbsent: not shown now
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"
#include "remote/relabel.h"

namespace persia::agent {

// Numbers series by their encoded labels (with the mark of native histograms, see write_request.h), each once, in the order in
// which they are added.
//
// All labels are in one string, so that a million series take a few allocations, and writing them reads memory in order.
// Thread safety: none.
class SeriesTable {
 public:
  // False, and nothing is added, if the series exists.
  bool Add(std::string_view labels);
  [[nodiscard]] std::optional<uint32_t> Find(std::string_view labels) const;
  [[nodiscard]] size_t size() const { return hashes_.size(); }
  [[nodiscard]] std::string_view labels(size_t series) const {
    return std::string_view(text_).substr(ends_[series], ends_[series + 1] - ends_[series]);
  }

 private:
  static constexpr uint32_t kFree = 0xffff'ffff;

  [[nodiscard]] size_t SlotOf(std::string_view labels, uint64_t hash) const;

  std::string text_;
  std::vector<uint64_t> ends_{0};  // ends_[i + 1] is where series i ends in text_
  std::vector<uint64_t> hashes_;
  // A hash table with linear probing. Its size is a power of two, at least twice the number of series.
  std::vector<uint32_t> slots_ = std::vector<uint32_t>(64, kFree);
};

class SeriesPlan {
 public:
  // `layout` outlives the plan.
  SeriesPlan(const Layout& layout, const RelabelRules& rules, bool sends_native = false);

  [[nodiscard]] const SeriesTable& series() const { return series_; }
  // Series that are not sent, since relabelling removed their name or gave them the labels of another series.
  [[nodiscard]] size_t conflicting() const { return conflicting_; }
  // One of those, for the log.
  [[nodiscard]] const std::string& example() const { return example_; }

  // A series of native histograms: its buckets, and where its values begin in a snapshot.
  struct Native {
    size_t series;
    const NativeBuckets* buckets;
    size_t first_value;
  };
  [[nodiscard]] const std::vector<Native>& natives() const { return natives_; }

  // Replaces `bits`; of a native histogram by those of its count. `values`: of a snapshot with this layout.
  void Values(const std::vector<double>& values, std::vector<uint64_t>& bits) const;
  // When the count of each series began, in Unix milliseconds; 0 for series that are no counts, or if that is unknown.
  [[nodiscard]] const std::vector<int64_t>& created_ms() const { return created_ms_; }

 private:
  static constexpr uint32_t kNone = 0xffff'ffff;

  void AddSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity& identity, const RelabelRules& rules);
  bool Add(Labels labels, const RelabelRules& rules, int64_t created_ms, bool is_native = false);
  // Whether the family's series have these forms.
  [[nodiscard]] bool HasNative(const FamilyLayout& family) const { return sends_native_ && family.native; }
  [[nodiscard]] bool HasLines(const FamilyLayout& family) const { return !HasNative(family) || family.native->classic; }

  const Layout& layout_;
  const bool sends_native_;
  SeriesTable series_;
  std::vector<uint32_t> targets_;  // the series of each exposed line, in order, or kNone
  std::vector<Native> natives_;
  std::vector<int64_t> created_ms_;
  size_t conflicting_ = 0;
  std::string example_;
  std::string encoded_;  // reused
};

}  // namespace persia::agent
