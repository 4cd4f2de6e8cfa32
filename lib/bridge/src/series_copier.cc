#include "series_copier.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <functional>
#include <system_error>
#include <utility>

namespace persia::metrics {
inline namespace abi_1 {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// The finite bounds, without that of the last bucket.
std::vector<double> BoundsOf(const ClientMetric::Histogram& histogram) {
  std::vector<double> bounds;
  for (const auto& bucket : histogram.bucket)
    if (!std::isinf(bucket.upper_bound)) bounds.push_back(bucket.upper_bound);
  return bounds;
}

// Compares bits, so that a NaN equals itself.
bool SameBounds(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](double x, double y) { return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y); });
}

// Cumulative counts, one for each bound and one for +Inf.
std::vector<uint64_t> CountsOf(const ClientMetric::Histogram& histogram) {
  std::vector<uint64_t> counts;
  uint64_t total = histogram.sample_count;
  for (const auto& bucket : histogram.bucket) {
    total = std::max(total, bucket.cumulative_count);
    if (!std::isinf(bucket.upper_bound))
      counts.push_back(std::max(bucket.cumulative_count, counts.empty() ? 0 : counts.back()));
  }
  counts.push_back(total);
  return counts;
}

std::vector<double> QuantilesOf(const ClientMetric::Summary& summary) {
  std::vector<double> quantiles;
  for (const auto& quantile : summary.quantile) quantiles.push_back(quantile.quantile);
  return quantiles;
}

std::string Text(double number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, number);
  return error == std::errc() ? std::string(text, end) : std::string();
}

Description About(const MetricFamily& family, const ClientMetric& metric) {
  Description about{.help = family.help};
  for (const auto& label : metric.label) about.labels.emplace_back(label.name, label.value);
  return about;
}

// The increase of a sum; 0 if it is unknown, for a NaN or after an infinity.
double Increase(double last, double now) { return std::isfinite(last) && !std::isnan(now) ? now - last : 0; }

// prometheus-cpp 1.0 has no MetricType::Info; in newer versions it follows Histogram.
bool IsInfo(MetricType type) { return static_cast<int>(type) > static_cast<int>(MetricType::Histogram); }

double GaugeValue(MetricType type, const ClientMetric& metric) {
  switch (type) {
    case MetricType::Counter:
      return metric.counter.value;
    case MetricType::Gauge:
      return metric.gauge.value;
    case MetricType::Untyped:
      return metric.untyped.value;
    default:
      return 1;
  }
}

}  // namespace

void SeriesCopier::CounterCopy::Update(double now) {
  if (!std::isfinite(now) || now < 0) return;  // not a counter's value; the next copy includes it
  to.Increment(now >= last ? now - last : now);
  last = now;
}

void SeriesCopier::HistogramCopy::Update(std::vector<uint64_t> now, double sum) {
  // A cumulative count falls only by a reset, which sets all counts and the sum to zero.
  if (now.size() != last.size() || !std::equal(now.begin(), now.end(), last.begin(), std::greater_equal<>())) {
    added.assign(now.size(), 0);
    last_sum = 0;
  }
  // The registry may be read in the middle of an observation, which is then missing in some of the cumulative counts. So a
  // cumulative count grows by no more than any count above it allows. The missing observation is added by a later copy.
  std::vector<uint64_t> buckets(now.size());
  uint64_t growth = UINT64_MAX;  // the most that this count and those below may grow
  for (size_t i = now.size(); i-- > 0;) {
    growth = std::min(growth, now[i] - added[i]);
    buckets[i] = growth;
  }
  for (size_t i = now.size(); i-- > 0;) {
    added[i] += buckets[i];
    buckets[i] -= i > 0 ? buckets[i - 1] : 0;
  }
  // From here nothing throws: an increase that was added but not noted would be added again.
  to.Add(buckets, Increase(last_sum, sum));
  last = std::move(now);
  last_sum = std::isnan(sum) ? last_sum : sum;
}

void SeriesCopier::SummaryCopy::Update(uint64_t count_now, double sum_now) {
  if (count_now < last_count) {
    last_count = 0;
    last_sum = 0;
  }
  count.Increment(count_now - last_count);
  last_count = count_now;
  // Negative observations make a sum fall, which a counter cannot: it stays until the sum exceeds its former maximum.
  if (sum_now > last_sum && std::isfinite(sum_now)) {
    sum.Increment(sum_now - last_sum);
    last_sum = sum_now;
  }
}

void SeriesCopier::Copy(const std::vector<MetricFamily>& families) {
  ++round_;
  for (const MetricFamily& family : families) {
    for (const ClientMetric& metric : family.metric) {
      Labels labels = metric.label;
      std::sort(labels.begin(), labels.end());
      CopySeries(family, metric, std::move(labels));
    }
  }
}

void SeriesCopier::CopySeries(const MetricFamily& family, const ClientMetric& metric, Labels labels) {
  if (shows_totals_ && (family.type == MetricType::Histogram || family.type == MetricType::Summary)) {
    return internal::LogOnce(left_out_logged_, "\"" + family.name +
                                                   "\" of a prometheus-cpp registry is left out: histograms and summaries are "
                                                   "not copied if others count them");
  }
  std::map<Labels, Series>& known = families_[{family.name, family.type}];
  auto found = known.find(labels);
  if (found == known.end()) found = known.emplace(std::move(labels), MakeSeries(family, metric)).first;
  Series& series = found->second;
  if (series.round == round_) return;  // a duplicate, whose difference to the first one would be added at each copy
  series.round = round_;
  Update(family, metric, &series);
}

SeriesCopier::Series SeriesCopier::MakeSeries(const MetricFamily& family, const ClientMetric& metric) const {
  const Description about = About(family, metric);
  switch (family.type) {
    case MetricType::Counter:
      if (shows_totals_) return {GaugeCopy{Gauge("", family.name, GaugeMerge::kMax, about)}};
      return {CounterCopy{Counter("", family.name, about)}};
    case MetricType::Histogram: {
      std::vector<double> bounds = BoundsOf(metric.histogram);
      const internal::BucketedHistogram to("", family.name, bounds, about);
      return {HistogramCopy{.to = to, .bounds = std::move(bounds), .last = {}, .added = {}}};
    }
    case MetricType::Summary:
      return {
          SummaryCopy{.count = Counter("", family.name + "_count", about), .sum = Counter("", family.name + "_sum", about)}};
    default:
      return {GaugeCopy{Gauge("", IsInfo(family.type) ? family.name + "_info" : family.name, about)}};
  }
}

void SeriesCopier::Update(const MetricFamily& family, const ClientMetric& metric, Series* series) {
  if (auto* counter = std::get_if<CounterCopy>(&series->copy)) {
    counter->Update(metric.counter.value);
  } else if (auto* gauge = std::get_if<GaugeCopy>(&series->copy)) {
    gauge->to.Set(GaugeValue(family.type, metric));
  } else if (auto* histogram = std::get_if<HistogramCopy>(&series->copy)) {
    if (!SameBounds(BoundsOf(metric.histogram), histogram->bounds)) {
      return internal::LogOnce(bounds_logged_, "histogram \"" + family.name +
                                                   "\" of a prometheus-cpp registry has changed its bounds; it is not copied "
                                                   "until it has the former ones");
    }
    histogram->Update(CountsOf(metric.histogram), metric.histogram.sample_sum);
  } else if (auto* summary = std::get_if<SummaryCopy>(&series->copy)) {
    UpdateSummary(family, metric, summary);
  }
}

void SeriesCopier::UpdateSummary(const MetricFamily& family, const ClientMetric& metric, SummaryCopy* summary) {
  summary->Update(metric.summary.sample_count, metric.summary.sample_sum);
  std::vector<double> quantiles = QuantilesOf(metric.summary);
  if (quantiles != summary->quantiles) {
    std::vector<Gauge> values;
    for (const double quantile : quantiles) {
      Description about = About(family, metric);
      about.labels.emplace_back("quantile", Text(quantile));
      values.emplace_back("", family.name, about);
    }
    summary->values = std::move(values);
    summary->quantiles = std::move(quantiles);
  }
  for (size_t i = 0; i < summary->values.size(); ++i) summary->values[i].Set(metric.summary.quantile[i].value);
}

}  // namespace abi_1
}  // namespace persia::metrics
