#include "own/death_metrics.h"

#include <chrono>
#include <string>
#include <utility>

#include "model/layout_builder.h"

namespace persia::agent {

DeathMetrics::DeathMetrics(const Identity& identity) {
  constexpr LayoutBuilder::Family kDeaths{"persia_worker_deaths_total", MetricType::kCounter,
                                          "Processes of this run that died, by cause; docs/deaths.md describes the causes."};
  LayoutBuilder builder;
  for (size_t i = 0; i < kDeathCauses; ++i) {
    builder.Add(identity, kDeaths, {{"cause", std::string(Name(static_cast<DeathCause>(i)))}});
  }
  layout_ = std::move(builder).Build();
}

std::shared_ptr<const Snapshot> DeathMetrics::Collect() {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = layout_;
  snapshot->collected_at = std::chrono::system_clock::now();
  snapshot->values.assign(totals_->begin(), totals_->end());
  return snapshot;
}

}  // namespace persia::agent
