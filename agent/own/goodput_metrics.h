// Metrics of where the job's time goes (health/goodput.h): of each rank `persia_rank_*` on its own identity, and of the job
// `persia_goodput_*` on the agent's.
//
//   GoodputMetrics metrics(agent_identity);
//   metrics.Collect(*goodput.report(), [](const RankKey& rank) { ... its identity, if it is exposed ... });
//
// Thread safety: the collector thread alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "health/goodput.h"
#include "model/snapshot.h"

namespace persia::agent {

class GoodputMetrics {
 public:
  explicit GoodputMetrics(Identity agent) : agent_(std::move(agent)) {}

  // `identity_of`: none for a rank that is not exposed; it counts in the job's totals. Snapshots have the same layout object as
  // long as the ranks are the same.
  std::shared_ptr<const Snapshot> Collect(const GoodputReport& report,
                                          const std::function<std::optional<Identity>(const RankKey&)>& identity_of);

 private:
  // The input of the layout.
  struct Shape {
    // Whether each marks phases: else it has only the buckets that need none.
    std::vector<std::pair<Identity, bool>> ranks = {};
    bool has_total = false;
    bool marks = false;

    friend bool operator==(const Shape&, const Shape&) = default;
  };

  void MakeLayout();

  const Identity agent_;
  Shape shape_;
  std::shared_ptr<const Layout> layout_;
};

}  // namespace persia::agent
