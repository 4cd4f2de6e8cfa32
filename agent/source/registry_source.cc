#include "source/registry_source.h"

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "model/naming.h"

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
    for (const auto& bucket : metric.histogram.bucket) {
      if (!std::isinf(bucket.upper_bound)) bounds.push_back(bucket.upper_bound);
    }
  } else if (type == prometheus::MetricType::Summary) {
    for (const auto& quantile : metric.summary.quantile) bounds.push_back(quantile.quantile);
  }
  return bounds;
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

// Writes a series' values in the order that SeriesLayout says.
void FillValues(prometheus::MetricType type, const prometheus::ClientMetric& metric, double* to) {
  switch (type) {
    case prometheus::MetricType::Counter:
      *to = metric.counter.value;
      return;
    case prometheus::MetricType::Gauge:
      *to = metric.gauge.value;
      return;
    case prometheus::MetricType::Untyped:
      *to = metric.untyped.value;
      return;
    case prometheus::MetricType::Summary:
      *to++ = metric.summary.sample_sum;
      *to++ = static_cast<double>(metric.summary.sample_count);
      for (const auto& quantile : metric.summary.quantile) *to++ = quantile.value;
      return;
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
  // A prometheus-cpp histogram is read while it is written to: its count is that of its buckets then.
  uint64_t count = metric.histogram.sample_count;
  if (!metric.histogram.bucket.empty()) count = std::max(count, metric.histogram.bucket.back().cumulative_count);
  *to = static_cast<double>(count - below);
}

}  // namespace

// Which series a collection held, and where in a snapshot each of them stands.
class RegistrySource::Shape {
 public:
  Shape(Families families, const Identity& identity, Diagnostics& diagnostics) {
    auto layout = std::make_shared<Layout>();
    layout->identities.push_back(identity);
    std::map<std::string, Building> by_name;
    for (const prometheus::MetricFamily& family : families)
      Add(family, by_name[SanitizeMetricName(family.name)], *layout, diagnostics);
    for (auto& [name, building] : by_name) {
      if (building.family.series.empty()) continue;
      building.family.name = name;
      layout->families.push_back(std::move(building.family));
    }
    layout_ = std::move(layout);
    families_ = std::move(families);
  }

  [[nodiscard]] bool Fits(const Families& families) const {
    return std::equal(families.begin(), families.end(), families_.begin(), families_.end(), SameFamily);
  }

  // REQUIRES: Fits(families).
  [[nodiscard]] std::shared_ptr<const Snapshot> Take(const Families& families) const {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->layout = layout_;
    snapshot->values.resize(layout_->value_count);
    snapshot->collected_at = std::chrono::system_clock::now();
    auto place = places_.begin();
    for (const prometheus::MetricFamily& family : families) {
      for (const prometheus::ClientMetric& metric : family.metric) {
        if (place->has_value()) FillValues(family.type, metric, snapshot->values.data() + **place);
        ++place;
      }
    }
    return snapshot;
  }

 private:
  struct Building {
    FamilyLayout family;
    std::set<Labels> seen;
  };

  void Add(const prometheus::MetricFamily& from, Building& to, Layout& layout, Diagnostics& diagnostics) {
    for (const prometheus::ClientMetric& metric : from.metric) {
      places_.emplace_back(AddSeries(from, metric, to, layout, diagnostics));
    }
  }

  static std::optional<size_t> AddSeries(const prometheus::MetricFamily& from, const prometheus::ClientMetric& metric,
                                         Building& to, Layout& layout, Diagnostics& diagnostics) {
    const auto leave_out = [&](const std::string& why) {
      diagnostics.Report("conflict",
                         "metric \"" + from.name + "\" of a prometheus-cpp registry is left out, in part or whole: " + why);
      return std::nullopt;
    };
    FamilyLayout& family = to.family;
    std::vector<double> bounds = BoundsOf(from.type, metric);
    if (family.series.empty()) {
      family.type = TypeOf(from.type);
      family.help = SanitizeText(from.help);
      family.bounds = std::move(bounds);
    } else if (family.type != TypeOf(from.type)) {
      return leave_out("a " + std::string(TypeName(TypeOf(from.type))) + " where there is a " +
                       std::string(TypeName(family.type)));
    } else if (family.bounds != bounds) {
      return leave_out("other bounds than its first series has");
    }
    Labels labels;
    for (const auto& label : metric.label) labels.emplace_back(label.name, label.value);
    std::sort(labels.begin(), labels.end());
    labels = ExposedLabels(labels);
    if (!to.seen.insert(labels).second) return leave_out("the same series twice");
    const size_t place = layout.value_count;
    family.series.push_back({.identity = 0, .first_value = place, .labels = std::move(labels)});
    layout.value_count += family.ValuesPerSeries();
    return place;
  }

  std::shared_ptr<const Layout> layout_;
  Families families_;                          // as collected, for comparison
  std::vector<std::optional<size_t>> places_;  // of each series in families_; none if it is left out
};

RegistrySource::RegistrySource(const prometheus::Collectable& registry, Identity identity)
    : registry_(registry), identity_(std::move(identity)) {}
RegistrySource::~RegistrySource() = default;

Result<std::shared_ptr<const Snapshot>> RegistrySource::Collect() {
  Families families;
  try {
    families = registry_.Collect();
  } catch (const std::exception& error) {
    return Error{std::string("a prometheus-cpp registry cannot be read: ") + error.what()};
  }
  if (!shape_ || !shape_->Fits(families)) shape_ = std::make_unique<Shape>(families, identity_, diagnostics_);
  return shape_->Take(families);
}

}  // namespace persia::agent
