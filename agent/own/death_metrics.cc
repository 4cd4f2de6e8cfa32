#include "own/death_metrics.h"

#include <chrono>
#include <string>
#include <utility>

namespace persia::agent {

DeathMetrics::DeathMetrics(Identity identity) {
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back(std::move(identity));
  FamilyLayout family{.name = "persia_worker_deaths_total",
                      .type = MetricType::kCounter,
                      .help = "Processes of this run that died, by cause; docs/deaths.md describes the causes.",
                      .unit = "",
                      .bounds = {},
                      .series = {}};
  for (size_t i = 0; i < kDeathCauses; ++i) {
    const auto cause = static_cast<DeathCause>(i);
    family.series.push_back(
        {.identity = 0, .first_value = layout->value_count++, .labels = Labels{{"cause", std::string(Name(cause))}}});
  }
  layout->families.push_back(std::move(family));
  layout_ = std::move(layout);
}

std::shared_ptr<const Snapshot> DeathMetrics::Collect() {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = layout_;
  snapshot->collected_at = std::chrono::system_clock::now();
  snapshot->values.assign(totals_->begin(), totals_->end());
  return snapshot;
}

}  // namespace persia::agent
