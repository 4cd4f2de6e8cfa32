// The name, type and labels that a metric is exposed with.
//
// A program names a metric by a group and a name, both any text. They become names that all readers take,
// `[a-zA-Z_:][a-zA-Z0-9_:]*` for a metric and `[a-zA-Z_][a-zA-Z0-9_]*` for a label. Prometheus reserves labels that begin with
// `__`, and gives some labels a meaning. If two metrics get the same name here, exposure/ keeps their series separate.
//
// Thread safety: any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exposed_names.h"
#include "model/snapshot.h"

namespace persia::agent {

// A metric as the program names it. The type is kUntyped for a stream, whose exposed type is decided here.
struct SourceMetric {
  std::string_view group;
  std::string_view name;
  MetricType type = MetricType::kUntyped;
};

// The only one of the agent's own labels that a rule may set.
inline constexpr char kRoleLabel[] = "role";

// How a metric is exposed. Names and texts are valid for Prometheus.
struct Exposed {
  std::string name = {};  // the family's
  // Streams only: counter (the sum), gauge (the last value), histogram or summary. None: gauge.
  std::optional<MetricType> type = {};
  // Added to each series; a series' own label of the same name is renamed to `exported_<name>`. The label `role` replaces the
  // role of the process, so that the series belongs to the instance of that role.
  Labels labels = {};
  bool labels_yield = false;  // the series' own label wins instead
  std::string help = {};      // empty: the program's own
  // Of the classic form of a stream's histogram or of a program's native one, after `scale`; ascending, finite. Empty: the
  // default bounds.
  std::vector<double> bounds = {};
  // See NativeBuckets. `native` and `max_buckets` are for streams.
  bool native = false;
  bool classic = false;
  uint32_t max_buckets = 0;
  std::vector<double> quantiles = {};  // of a stream's summary, in [0, 1], ascending
  double scale = 1;                    // factor for values; positive, finite
  // Streams only: a series expires when no value has come for this long. None or 0: never.
  std::optional<std::chrono::milliseconds> ttl = {};
  bool drop = false;  // not exposed
};

class Naming {
 public:
  virtual ~Naming() = default;
  // The same for the same metric each time; never null.
  [[nodiscard]] virtual std::shared_ptr<const Exposed> Expose(const SourceMetric& metric) const = 0;
};

// Without rules: the plain name, and a gauge for a stream.
class PlainNaming : public Naming {
 public:
  [[nodiscard]] std::shared_ptr<const Exposed> Expose(const SourceMetric& metric) const override;
};

// `<group>_<name>`, made valid.
std::string PlainName(const SourceMetric& metric);

// The functions that make names, labels and texts valid, as the library has them.
using metrics::ExposedLabels;
using metrics::SanitizeLabelName;
using metrics::SanitizeMetricName;
using metrics::SanitizeText;

}  // namespace persia::agent
