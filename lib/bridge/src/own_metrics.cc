// This process's metrics as a prometheus::Collectable.
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exposed_names.h"
#include "persia/metrics/internal/bridge.h"
#include "persia/metrics/prometheus_cpp.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

using internal::FamilyValues;
using internal::SeriesValues;
using internal::ValueKind;
using prometheus::ClientMetric;
using prometheus::MetricType;

constexpr char kEventsName[] = "persia_events_total";
constexpr char kEventsHelp[] = "Events that the job recorded.";
constexpr char kSourceLabel[] = "source";

MetricType TypeOf(ValueKind kind) {
  switch (kind) {
    case ValueKind::kCounter:
    case ValueKind::kEvent:
      return MetricType::Counter;
    case ValueKind::kHistogram:
      return MetricType::Histogram;
    case ValueKind::kGauge:
    case ValueKind::kStream:
      break;
  }
  return MetricType::Gauge;
}

std::string_view TypeWord(MetricType type) {
  return type == MetricType::Counter ? "counter" : type == MetricType::Histogram ? "histogram" : "gauge";
}

// `{a="x",b="y"}`
std::string LabelsText(const LabelSet& labels) {
  std::string out = "{";
  for (const auto& [name, value] : labels) out += (out.size() > 1 ? "," : "") + name + "=\"" + value + "\"";
  return out + "}";
}

bool HasValue(const FamilyValues& family, const SeriesValues& series) {
  return series.set || (family.kind != ValueKind::kGauge && family.kind != ValueKind::kStream);
}

// prometheus-cpp 1.0.1 does not escape help texts: the text after a newline would be read as a sample.
std::string EscapedHelp(std::string_view help) {
  std::string out;
  for (const char c : SanitizeText(help)) {
    if (c == '\\' || c == '\n') out += '\\';
    out += c == '\n' ? 'n' : c;
  }
  return out;
}

void FillValue(const FamilyValues& family, const SeriesValues& series, ClientMetric* metric) {
  switch (TypeOf(family.kind)) {
    case MetricType::Counter:
      metric->counter.value = series.value;
      return;
    case MetricType::Histogram: {
      uint64_t count = 0;
      for (size_t i = 0; i < series.buckets.size(); ++i) {
        count += series.buckets[i];
        const double bound = i < family.bounds.size() ? family.bounds[i] : std::numeric_limits<double>::infinity();
        metric->histogram.bucket.push_back({count, bound});
      }
      metric->histogram.sample_count = count;
      metric->histogram.sample_sum = series.sum;
      return;
    }
    default:
      metric->gauge.value = series.value;
  }
}

class OwnMetrics : public prometheus::Collectable {
 public:
  // Returns nothing if memory runs out: an exception would end the thread that serves the scrape.
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override try {
    const std::vector<FamilyValues> values = internal::ReadValues();
    const std::map<std::string, Sources> by_name = NamesOf(values);
    std::vector<prometheus::MetricFamily> out;
    for (const auto& [name, sources] : by_name) {
      prometheus::MetricFamily family;
      family.name = name;
      family.type = TypeOf(sources.front()->kind);
      const bool event = sources.front()->kind == ValueKind::kEvent;
      family.help = event ? kEventsHelp : EscapedHelp(sources.front()->help);
      std::set<ExposedLabelSet> seen;
      for (const FamilyValues* source : sources) {
        if (TypeOf(source->kind) == family.type) {
          AddSeries(*source, &seen, &family);
        } else {
          internal::LogOnce(conflict_logged_, "metrics of different types have the exposed name " + name +
                                                  "; the Collectable exposes those of the first one's type");
        }
      }
      if (!family.metric.empty()) out.push_back(std::move(family));
    }
    return out;
  } catch (const std::exception&) {
    return {};
  }

 private:
  using Sources = std::vector<const FamilyValues*>;  // in the order of their creation

  // Families by exposed name. If a name is that of a histogram's sample, the family's type is appended, as in the agent.
  static std::map<std::string, Sources> NamesOf(const std::vector<FamilyValues>& values) {
    std::map<std::string, Sources> by_name;
    for (const FamilyValues& family : values)
      if (std::ranges::any_of(family.series, [&](const SeriesValues& series) { return HasValue(family, series); }))
        by_name[family.kind == ValueKind::kEvent ? kEventsName : ExposedName(family.group, family.name)].push_back(&family);
    for (const std::string_view suffix : {"_bucket", "_count", "_sum"}) {
      for (auto at = by_name.begin(); at != by_name.end();) {
        const std::string& name = at->first;
        const auto histogram =
            name.ends_with(suffix) ? by_name.find(name.substr(0, name.size() - suffix.size())) : by_name.end();
        if (histogram == by_name.end() || histogram->second.front()->kind != ValueKind::kHistogram) {
          ++at;
          continue;
        }
        Sources& renamed = by_name[name + "_" + std::string(TypeWord(TypeOf(at->second.front()->kind)))];
        renamed.insert(renamed.end(), at->second.begin(), at->second.end());
        at = by_name.erase(at);
      }
    }
    return by_name;
  }

  static void AddSeries(const FamilyValues& source, std::set<ExposedLabelSet>* seen, prometheus::MetricFamily* to) {
    for (const SeriesValues& series : source.series) {
      if (!HasValue(source, series)) continue;
      LabelSet own = *series.labels;
      if (source.kind == ValueKind::kEvent)
        own.insert(own.end(), {{"event", std::string(source.name)}, {"type", std::string(source.group)}});
      ExposedLabelSet labels;
      const auto is_new = [&](const LabelSet& of) {
        labels = ExposedLabels(of);
        return seen->insert(labels).second;
      };
      const auto with_source = [&](const std::string& text) {
        LabelSet of = own;
        of.emplace_back(kSourceLabel, text);
        return of;
      };
      if (!is_new(own)) {
        const std::string name = std::string(source.group) + "/" + std::string(source.name);
        // The labels of two series of one family may differ only in characters that Prometheus does not allow.
        if (!is_new(with_source(name)) && !is_new(with_source(name + LabelsText(own))))
          continue;  // they differ in bytes that are not UTF-8
      }
      ClientMetric metric;
      for (auto& [name, value] : labels) metric.label.push_back({name, value});
      FillValue(source, series, &metric);
      to->metric.push_back(std::move(metric));
    }
  }

  mutable std::atomic<bool> conflict_logged_ = false;
};

}  // namespace

std::shared_ptr<prometheus::Collectable> AsCollectable() noexcept try {
  // Never destroyed: an Exposer may be scraped while the program ends.
  static const auto& own = *new std::shared_ptr<prometheus::Collectable>(std::make_shared<OwnMetrics>());
  return own;
} catch (const std::exception&) {
  return nullptr;
}

}  // namespace abi_1
}  // namespace persia::metrics
