// Makes one snapshot of the snapshots of several sources, so that whoever renders or pushes sees one sorted set of families.
//
// It is also the gate that keeps one bad metric from costing the rest: a gateway refuses a whole push for one family that
// comes twice with two types, for one duplicate series, or for a counter `x_count` beside a histogram `x`. What cannot stand
// beside the others is left out here, and reported by name once.
//
// The combined layout is the same object for as long as all layouts that come in are the same objects; then a call copies
// values and nothing else.
//
// Thread safety: none, it belongs to the collector thread.
//
//   SnapshotCombiner combiner([](const std::string& message) { log->warn(message); });
//   std::shared_ptr<const Snapshot> all = combiner.Combine({segments_snapshot, own_snapshot});
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/snapshot.h"

namespace persia::agent {

class SnapshotCombiner {
 public:
  // Called with one sentence for each family of which something is left out, when that begins.
  using Report = std::function<void(const std::string& message)>;

  explicit SnapshotCombiner(Report report) : report_(std::move(report)) {}

  // Families of one name are merged if type and bounds agree; else the part that comes later in `parts` is left out, as are a
  // later part's duplicates of a series. A label that its identity has too, and `le` or `quantile` where the format needs that
  // name, is renamed `exported_<label>`, as Prometheus does; one with an empty value is left away, since that is how
  // Prometheus says "no such label". Never null; null parts (a source that failed) are passed over.
  std::shared_ptr<const Snapshot> Combine(const std::vector<std::shared_ptr<const Snapshot>>& parts);

  // Series that are left out now.
  [[nodiscard]] size_t series_left_out() const { return series_left_out_; }

 private:
  void Rebuild(const std::vector<const Snapshot*>& parts);

  const Report report_;
  std::vector<std::shared_ptr<const Layout>> inputs_;  // of which layout_ was made
  std::shared_ptr<const Layout> layout_;
  std::set<std::string> left_out_;  // families that were reported and are still left out
  size_t series_left_out_ = 0;
};

}  // namespace persia::agent
