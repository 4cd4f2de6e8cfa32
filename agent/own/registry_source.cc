#include "own/registry_source.h"

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "segment/segment_records.h"

namespace persia::agent {
namespace {

using Families = std::vector<prometheus::MetricFamily>;

MetricType TypeOf(prometheus::MetricType type) {
  switch (type) {
    case prometheus::MetricType::Counter:
      return MetricType::kCounter;
    case prometheus::MetricType::Gauge:
      return MetricType::kGauge;
    case prometheus::MetricType::Histogram:
      return MetricType::kHistogram;
    case prometheus::MetricType::Summary:
      return MetricType::kSummary;
    case prometheus::MetricType::Untyped:
      break;
  }
  return MetricType::kUntyped;
}

// A histogram's bounds without +Inf, a summary's quantiles.
std::vector<double> BoundsOf(prometheus::MetricType type, const prometheus::ClientMetric& metric) {
  std::vector<double> bounds;
  if (type == prometheus::MetricType::Histogram) {
    for (const auto& bucket : metric.histogram.bucket)
      if (!std::isinf(bucket.upper_bound)) bounds.push_back(bucket.upper_bound);
  } else if (type == prometheus::MetricType::Summary) {
    for (const auto& quantile : metric.summary.quantile) bounds.push_back(quantile.quantile);
  }
  return bounds;
}

// Its values are the same in both layouts. The bounds of its classic form are powers of two.
void SetNative(FamilyLayout& family) {
  constexpr size_t kLeastBounds = 32;
  const std::vector<double>& bounds = family.bounds;
  if (family.type != MetricType::kHistogram || bounds.size() < kLeastBounds || bounds.size() > NativeBuckets::kMaxBuckets ||
      !GoodBounds(metrics::segment::Kind::kNativeHistogram, bounds))
    return;
  NativeBuckets native{.schema = NativeSchemaOf(bounds)};
  native.first = metrics::segment::NearestNativeIndex(native.schema, bounds.front()) + 1;
  native.buckets = static_cast<uint32_t>(bounds.size());
  std::vector<double> classic;
  for (uint32_t i = 0; i < native.buckets; ++i) {
    int exponent = 0;
    if (std::frexp(bounds[i], &exponent) != 0.5) continue;
    native.cuts.push_back(i + 1);
    classic.push_back(bounds[i]);
  }
  family.bounds = std::move(classic);
  family.native = std::move(native);
}

bool SameSeries(const prometheus::ClientMetric& a, const prometheus::ClientMetric& b) {
  const auto same_bound = [](const auto& x, const auto& y) { return x.upper_bound == y.upper_bound; };
  const auto same_quantile = [](const auto& x, const auto& y) { return x.quantile == y.quantile; };
  return a.label == b.label &&
         std::equal(a.histogram.bucket.begin(), a.histogram.bucket.end(), b.histogram.bucket.begin(), b.histogram.bucket.end(),
                    same_bound) &&
         std::equal(a.summary.quantile.begin(), a.summary.quantile.end(), b.summary.quantile.begin(), b.summary.quantile.end(),
                    same_quantile);
}

bool SameFamily(const prometheus::MetricFamily& a, const prometheus::MetricFamily& b) {
  return a.type == b.type && a.name == b.name && a.help == b.help &&
         std::equal(a.metric.begin(), a.metric.end(), b.metric.begin(), b.metric.end(), SameSeries);
}

// Writes a series' values in the order of SeriesLayout. Returns the position after them.
double* FillValues(prometheus::MetricType type, const prometheus::ClientMetric& metric, double* to) {
  switch (type) {
    case prometheus::MetricType::Counter:
      *to++ = metric.counter.value;
      return to;
    case prometheus::MetricType::Gauge:
      *to++ = metric.gauge.value;
      return to;
    case prometheus::MetricType::Untyped:
      *to++ = metric.untyped.value;
      return to;
    case prometheus::MetricType::Summary:
      *to++ = metric.summary.sample_sum;
      *to++ = static_cast<double>(metric.summary.sample_count);
      for (const auto& quantile : metric.summary.quantile) *to++ = quantile.value;
      return to;
    case prometheus::MetricType::Histogram:
      break;
  }
  *to++ = metric.histogram.sample_sum;
  uint64_t below = 0;
  for (const auto& bucket : metric.histogram.bucket) {
    if (std::isinf(bucket.upper_bound)) continue;
    *to++ = static_cast<double>(bucket.cumulative_count - below);
    below = bucket.cumulative_count;
  }
  // prometheus-cpp reads a histogram while other threads write to it, so that the count may be below that of the buckets.
  uint64_t count = metric.histogram.sample_count;
  if (!metric.histogram.bucket.empty()) count = std::max(count, metric.histogram.bucket.back().cumulative_count);
  *to++ = static_cast<double>(count - below);
  return to;
}

}  // namespace

// The series of a collection, in the registry's order, and their layout.
class RegistrySource::Shape {
 public:
  Shape(Families families, const Identity& identity) : families_(std::move(families)) {
    auto layout = std::make_shared<Layout>();
    layout->identities.push_back(identity);
    for (const prometheus::MetricFamily& from : families_) {
      if (from.metric.empty()) continue;
      FamilyLayout& family = layout->families.emplace_back();
      family.name = from.name;
      family.type = TypeOf(from.type);
      family.help = from.help;
      family.bounds = BoundsOf(from.type, from.metric.front());
      SetNative(family);
      for (const prometheus::ClientMetric& metric : from.metric) {
        Labels labels;
        for (const auto& label : metric.label) labels.emplace_back(label.name, label.value);
        std::sort(labels.begin(), labels.end());
        family.series.push_back({.identity = 0, .first_value = layout->value_count, .labels = std::move(labels)});
        layout->value_count += family.ValuesPerSeries();
      }
    }
    std::ranges::sort(layout->families, {}, &FamilyLayout::name);
    layout_ = std::move(layout);
  }

  [[nodiscard]] bool Fits(const Families& families) const {
    return std::equal(families.begin(), families.end(), families_.begin(), families_.end(), SameFamily);
  }

  // REQUIRES: Fits(families).
  [[nodiscard]] std::shared_ptr<const Snapshot> MakeSnapshot(const Families& families) const {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->layout = layout_;
    snapshot->values.resize(layout_->value_count);
    snapshot->collected_at = std::chrono::system_clock::now();
    double* to = snapshot->values.data();
    for (const prometheus::MetricFamily& family : families)
      for (const prometheus::ClientMetric& metric : family.metric) to = FillValues(family.type, metric, to);
    return snapshot;
  }

 private:
  const Families families_;  // for comparison
  std::shared_ptr<const Layout> layout_;
};

RegistrySource::RegistrySource(const prometheus::Collectable& registry, Identity identity)
    : registry_(registry), identity_(std::move(identity)) {}
RegistrySource::~RegistrySource() = default;

std::shared_ptr<const Snapshot> RegistrySource::Collect() {
  Families families = registry_.Collect();
  if (!shape_ || !shape_->Fits(families)) shape_ = std::make_unique<Shape>(families, identity_);
  return shape_->MakeSnapshot(families);
}

}  // namespace persia::agent
