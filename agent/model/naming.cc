#include "model/naming.h"

#include <type_traits>
#include <utility>

#include "exposed_names.h"

namespace persia::agent {

static_assert(std::is_same_v<Labels, metrics::ExposedLabelSet>);

std::string SanitizeMetricName(std::string_view name) { return metrics::SanitizeMetricName(name); }

std::string SanitizeLabelName(std::string_view name) { return metrics::SanitizeLabelName(name); }

std::string SanitizeText(std::string_view text) { return metrics::SanitizeText(text); }

Labels ExposedLabels(const Labels& labels) { return metrics::ExposedLabels(labels); }

std::string PlainName(const SourceMetric& metric) { return metrics::ExposedName(metric.group, metric.name); }

std::shared_ptr<const Exposed> PlainNaming::Expose(const SourceMetric& metric) const {
  Exposed exposed;
  exposed.name = PlainName(metric);
  return std::make_shared<const Exposed>(std::move(exposed));
}

}  // namespace persia::agent
