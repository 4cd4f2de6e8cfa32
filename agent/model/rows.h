// Rows of the agent's own metrics: counters and gauges, one value a row. Makes a snapshot of them.
//
//   rows.On(identity);                                       // of the rows that follow
//   rows.Add({"persia_hang", MetricType::kGauge, "For how long ..."}, seconds, {{"phase", "data"}});
//   std::shared_ptr<const Snapshot> snapshot = rows.Take();
//
// Snapshots have the same layout object as long as the rows have the same keys in the same order: a layout that changes costs a
// new plan of all series. So a row whose value is not known now is added with kAbsentValue.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "model/snapshot.h"

namespace persia::agent {

class Rows {
 public:
  // Texts that outlive the rows.
  struct Family {
    std::string_view name;
    MetricType type;
    std::string_view help;
  };
  using LabelViews = std::initializer_list<SeriesLabels::value_type>;

  void On(const Identity& identity);
  // REQUIRES: On was called; no other row has this identity, family and labels; all families of one name are equal.
  template <class List = LabelViews>
  void Add(const Family& family, double value, const List& labels = {}) {
    const size_t row = values_.size();
    values_.push_back(value);
    if (row < keys_.size()) {
      const Key& key = keys_[row];
      const auto same = [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; };
      if (key.identity == identity_ && key.family.name == family.name && std::ranges::equal(key.labels, labels, same)) return;
      ForgetFrom(row);
    }
    keys_.push_back({identity_, family, Labels(labels.begin(), labels.end())});
  }
  template <class List = LabelViews>
  void Add(const Family& family, std::optional<double> value, const List& labels = {}) {
    Add(family, value.value_or(kAbsentValue), labels);
  }

  // The rows since the last Take.
  [[nodiscard]] std::shared_ptr<const Snapshot> Take();

 private:
  struct Key {
    const Identity* identity;  // in identities_
    Family family;
    SeriesLabels labels;
  };

  void ForgetFrom(size_t row);
  [[nodiscard]] std::shared_ptr<const Layout> MakeLayout();

  std::set<Identity> identities_;       // of keys_
  const Identity* identity_ = nullptr;  // of the next row
  std::vector<Key> keys_;               // of the last snapshot, then of the rows that differ from it
  std::vector<double> values_;
  std::shared_ptr<const Layout> layout_;  // of keys_; null: it must be made
};

}  // namespace persia::agent
