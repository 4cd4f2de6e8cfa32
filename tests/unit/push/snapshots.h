// Small snapshots for the tests of sinks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/snapshot.h"

namespace persia::agent {

inline const Identity kTrainer{"job", {{"instance", "rep_0"}, {"role", "trainer"}}};
inline const Identity kServer{"job", {{"instance", "rep_1"}, {"role", "server"}}};

struct Sample {
  std::string name;
  MetricType type;
  double value;
  uint32_t identity = 0;
  Labels labels = {};
  std::string help = "Helps.";
  int64_t created_ms = 0;
};

// Of families in the order of their names, each of one series.
inline Snapshot Snap(std::vector<Identity> identities, const std::vector<Sample>& samples) {
  auto layout = std::make_shared<Layout>();
  layout->identities = std::move(identities);
  Snapshot snapshot;
  for (const Sample& sample : samples) {
    if (layout->families.empty() || layout->families.back().name != sample.name) {
      layout->families.push_back(
          {.name = sample.name, .type = sample.type, .help = sample.help, .unit = "", .bounds = {}, .series = {}});
    }
    layout->families.back().series.push_back({.identity = sample.identity,
                                              .first_value = layout->value_count++,
                                              .labels = sample.labels,
                                              .created_ms = sample.created_ms});
    snapshot.values.push_back(sample.value);
  }
  snapshot.layout = std::move(layout);
  return snapshot;
}

}  // namespace persia::agent
