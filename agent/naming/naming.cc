#include "naming/naming.h"

#include <type_traits>
#include <utility>

namespace persia::agent {

static_assert(std::is_same_v<Labels, metrics::ExposedLabelSet>);

std::string PlainName(const SourceMetric& metric) { return metrics::ExposedName(metric.group, metric.name); }

std::shared_ptr<const Exposed> PlainNaming::Expose(const SourceMetric& metric) const {
  Exposed exposed;
  exposed.name = PlainName(metric);
  return std::make_shared<const Exposed>(std::move(exposed));
}

}  // namespace persia::agent
