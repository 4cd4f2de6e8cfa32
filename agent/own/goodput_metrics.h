// Metrics of where the job's time goes (health/goodput.h): of each rank `persia_rank_*` on its own identity, and of the job
// `persia_goodput_*` on the agent's.
//
//   GoodputMetrics metrics(agent_identity);
//   metrics.Collect(*goodput.report(), [](const RankId& rank) { ... its identity, if it is exposed ... });
//
// Thread safety: the collector thread alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "health/goodput.h"
#include "model/rows.h"

namespace persia::agent {

class GoodputMetrics {
 public:
  explicit GoodputMetrics(Identity agent) : agent_(std::move(agent)) {}

  // `identity_of`: none for a rank that is not exposed; it counts in the job's totals. Snapshots have the same layout object as
  // long as the ranks are the same.
  std::shared_ptr<const Snapshot> Collect(const GoodputReport& report,
                                          const std::function<std::optional<Identity>(const RankId&)>& identity_of);

 private:
  const Identity agent_;
  Rows rows_;
};

}  // namespace persia::agent
