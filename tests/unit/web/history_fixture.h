// Builds snapshots from families, their label sets, and their values.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "web/history.h"

namespace persia::agent {

struct TestSeries {
  Labels labels;
  std::vector<double> values;
};

struct TestFamily {
  std::string name;
  MetricType type = MetricType::kGauge;
  std::vector<double> bounds = {};
  std::vector<TestSeries> series = {};
};

// `families`: sorted by name. All series are of job "dlrm", instance "rep_0".
inline std::shared_ptr<const Snapshot> MakeSnapshot(const std::vector<TestFamily>& families, int64_t unix_ms = 0) {
  auto layout = std::make_shared<Layout>();
  auto snapshot = std::make_shared<Snapshot>();
  layout->identities.push_back({"dlrm", {{"instance", "rep_0"}}});
  for (const TestFamily& made : families) {
    FamilyLayout& family = layout->families.emplace_back();
    family.name = made.name;
    family.type = made.type;
    family.bounds = made.bounds;
    for (const TestSeries& series : made.series) {
      family.series.push_back({.identity = 0, .first_value = snapshot->values.size(), .labels = series.labels});
      snapshot->values.insert(snapshot->values.end(), series.values.begin(), series.values.end());
    }
  }
  layout->value_count = snapshot->values.size();
  snapshot->layout = std::move(layout);
  snapshot->collected_at = std::chrono::system_clock::time_point(std::chrono::milliseconds(unix_ms));
  return snapshot;
}

}  // namespace persia::agent
