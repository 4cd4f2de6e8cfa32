// What a layout comes to as series of remote write, and how a snapshot's values are laid out on them.
//
// A histogram becomes `_bucket` with `le`, `_sum` and `_count`, a summary its quantiles, `_sum` and `_count`, under the names
// and labels that a scrape of what is pushed would give. Relabelling happens here: once per layout, and not per tick.
//
// Thread safety: immutable once made.
//
//   SeriesPlan plan(*snapshot.layout, rules);
//   plan.Values(snapshot.values, bits);   // bits[i] is the value of plan.series().labels(i); kAbsent: not shown now
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/snapshot.h"
#include "remote/relabel.h"
#include "remote/series_table.h"

namespace persia::agent {

class SeriesPlan {
 public:
  // `layout` outlives the plan.
  SeriesPlan(const Layout& layout, const RelabelRules& rules);

  [[nodiscard]] const SeriesTable& series() const { return series_; }
  // By relabelling: dropped, and left out since another series has the same labels now, or since no name is left.
  [[nodiscard]] size_t dropped() const { return dropped_; }
  [[nodiscard]] size_t without_place() const { return without_place_; }
  // One that is left out, for the log.
  [[nodiscard]] const std::string& example() const { return example_; }

  // Replaces `bits`. `values`: of a snapshot of the layout.
  void Values(const std::vector<double>& values, std::vector<uint64_t>& bits) const;

 private:
  static constexpr uint32_t kNowhere = 0xffff'ffff;

  void AddSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity& identity, const RelabelRules& rules);
  void Add(Labels labels, const RelabelRules& rules);

  const Layout& layout_;
  SeriesTable series_;
  std::vector<uint32_t> places_;  // of each line of the text, in its order: which series it is, or kNowhere
  size_t dropped_ = 0;
  size_t without_place_ = 0;
  std::string example_;
  std::string encoded_;  // kept for its memory
};

}  // namespace persia::agent
