// `persia_worker_deaths_total`: the deaths of this run's processes by cause, on the agent's own identity.
//
//   DeathMetrics metrics(agent_identity);
//   metrics.Show(totals);                  // by DeathCause
//   if (metrics.shows()) metrics.Collect();
//
// Every cause has a series from the first Show on, so that rate() sees the first death. Thread safety: the collector thread
// alone.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "health/deaths.h"
#include "model/rows.h"

namespace persia::agent {

class DeathMetrics {
 public:
  using Totals = std::array<uint64_t, kDeathCauses>;

  explicit DeathMetrics(Identity identity) : identity_(std::move(identity)) {}

  void Show(const Totals& totals) { totals_ = totals; }
  // False: the counts of the former agents are not known yet. Zeros would fall below them.
  [[nodiscard]] bool shows() const { return totals_.has_value(); }
  // REQUIRES: shows().
  std::shared_ptr<const Snapshot> Collect();

 private:
  const Identity identity_;
  std::optional<Totals> totals_;
  Rows rows_;
};

}  // namespace persia::agent
