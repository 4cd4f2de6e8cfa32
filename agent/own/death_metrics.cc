#include "own/death_metrics.h"

#include <cstddef>

namespace persia::agent {

std::shared_ptr<const Snapshot> DeathMetrics::Collect() {
  constexpr Rows::Family kDeaths{"persia_worker_deaths_total", MetricType::kCounter,
                                 "Processes of this run that died, by cause; docs/deaths.md describes the causes."};
  rows_.On(identity_);
  for (size_t i = 0; i < kDeathCauses; ++i)
    rows_.Add(kDeaths, static_cast<double>((*totals_)[i]), {{"cause", Name(static_cast<DeathCause>(i))}});
  return rows_.Take();
}

}  // namespace persia::agent
