#include "persia/metrics/read.h"

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "persia/metrics/internal/bridge.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

using internal::FamilyValues;
using internal::SeriesValues;

SeriesSnapshot Copy(const FamilyValues& family, const SeriesValues& series) {
  SeriesSnapshot copy{.labels = *series.labels, .count = series.count, .sum = series.sum, .buckets = series.buckets};
  switch (family.kind) {
    case internal::ValueKind::kCounter:
    case internal::ValueKind::kEvent:
      copy.value = series.value;
      break;
    case internal::ValueKind::kGauge:
    case internal::ValueKind::kStream:
      copy.value = series.set ? std::optional(series.value) : std::nullopt;
      break;
    case internal::ValueKind::kHistogram:
      copy.value = static_cast<double>(series.count);
      break;
  }
  return copy;
}

MetricSnapshot Copy(const FamilyValues& family) {
  MetricSnapshot copy{.kind = family.native ? MetricKind::kNativeHistogram : static_cast<MetricKind>(family.kind),
                      .group = std::string(family.group),
                      .name = std::string(family.name),
                      .help = std::string(family.help),
                      .unit = std::string(family.unit),
                      .merge = family.merge};
  if (family.kind == internal::ValueKind::kHistogram) copy.bounds.assign(family.bounds.begin(), family.bounds.end());
  for (const SeriesValues& series : family.series) copy.series.push_back(Copy(family, series));
  return copy;
}

const MetricSnapshot* FindIn(const Snapshot& snapshot, std::string_view group, std::string_view name, bool event) {
  for (const MetricSnapshot& metric : snapshot.metrics)
    if (metric.group == group && metric.name == name && (metric.kind == MetricKind::kEvent) == event) return &metric;
  return nullptr;
}

// Whether the sets are equal; `sorted` has no name twice.
bool SameLabels(const LabelSet& sorted, LabelView labels) {
  return sorted.size() == labels.size() &&
         std::ranges::all_of(
             sorted,
             [&](const auto& own) {
               return std::ranges::any_of(
                   labels, [&](const Label& given) { return own.first == given.name && own.second == given.value; });
             });
}

}  // namespace

const MetricSnapshot* Snapshot::FindMetric(std::string_view group, std::string_view name) const noexcept {
  return FindIn(*this, group, name, false);
}

const MetricSnapshot* Snapshot::FindEvent(std::string_view type, std::string_view name) const noexcept {
  return FindIn(*this, type, name, true);
}

const SeriesSnapshot* Snapshot::Find(std::string_view group, std::string_view name, LabelView labels) const noexcept {
  const MetricSnapshot* metric = FindMetric(group, name);
  if (metric == nullptr) return nullptr;
  const auto found =
      std::ranges::find_if(metric->series, [&](const auto& series) { return SameLabels(series.labels, labels); });
  return found == metric->series.end() ? nullptr : &*found;
}

std::optional<double> Snapshot::Value(std::string_view group, std::string_view name, LabelView labels) const noexcept {
  const SeriesSnapshot* series = Find(group, name, labels);
  return series == nullptr ? std::nullopt : series->value;
}

Snapshot ReadSnapshot() noexcept try {
  Snapshot snapshot;
  for (const FamilyValues& family : internal::ReadValues()) snapshot.metrics.push_back(Copy(family));
  return snapshot;
} catch (const std::bad_alloc&) {
  Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  return {};
}

std::optional<double> ReadValue(std::string_view group, std::string_view name, LabelView labels) noexcept {
  return Registry::Get().ValueOf(group, name, labels);
}

}  // namespace abi_1
}  // namespace persia::metrics
