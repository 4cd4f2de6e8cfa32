// From the names that programs give to names that Prometheus takes.
//
// A program names a metric by (group, name), both any text; Prometheus wants `[a-zA-Z_:][a-zA-Z0-9_:]*` for a metric and
// `[a-zA-Z_][a-zA-Z0-9_]*` for a label, keeps names that start with `__` to itself, and gives some labels a meaning of their
// own. What maps two different names to one is told apart by whoever lays out the series.
// Thread safety: pure functions, any thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"

namespace persia::agent {

// A metric as the program names it. Its type is kUntyped for a stream: what that is shown as is decided by the naming.
struct SourceMetric {
  std::string_view group;
  std::string_view name;
  MetricType type = MetricType::kUntyped;
};

// Of all labels that the agent owns the one that a rule may set.
inline constexpr char kRoleLabel[] = "role";

// How a metric is exposed. Names and text are valid for Prometheus.
struct Exposed {
  std::string name = {};  // the family's
  // Of a stream: counter (the sum), gauge (the last value), histogram or summary; none was asked for: a gauge.
  std::optional<MetricType> type = {};
  // That each of its series gets; a series' own label of the same name steps aside to `exported_<name>`. The label `role` takes
  // the place of the process's role: the series belongs to the instance of that role.
  Labels labels = {};
  bool labels_yield = false;           // instead, the series' own wins
  std::string help = {};               // empty: the program's own
  std::vector<double> bounds = {};     // of a stream's histogram, after `scale`; ascending, finite
  std::vector<double> quantiles = {};  // of a stream's summary, in (0, 1), ascending
  double scale = 1;                    // that values are multiplied by; positive, finite
  // Of a stream: its series go when no value has come for so long. None, or 0: they stay.
  std::optional<std::chrono::milliseconds> ttl = {};
  bool drop = false;  // not exposed at all
};

// Says how a metric is exposed. What rules replace.
class Naming {
 public:
  virtual ~Naming() = default;
  // Always the same for the same metric; never null.
  [[nodiscard]] virtual std::shared_ptr<const Exposed> Expose(const SourceMetric& metric) const = 0;
};

// `<group>_<name>`, with `_` for each run of what Prometheus cannot take. Group `persia` and an empty group add no prefix.
class PlainNaming : public Naming {
 public:
  [[nodiscard]] std::shared_ptr<const Exposed> Expose(const SourceMetric& metric) const override;
};
// The name that it gives.
std::string PlainName(const SourceMetric& metric);

// As a metric's name. Each byte or character that does not fit becomes `_`; a leading digit gets one before it.
std::string SanitizeMetricName(std::string_view name);
// As a label's name: the same without ':', and at most one leading `_`. Labels that the agent or a format owns (job, instance,
// ip_addr, role, le, quantile) get the prefix `exported_`.
std::string SanitizeLabelName(std::string_view name);
// UTF-8, with U+FFFD for each maximal part that is not. No NUL either, which text formats cannot carry everywhere.
std::string SanitizeText(std::string_view text);

// The labels as exposed: names and values sanitised, empty values left out (Prometheus takes them for absent), sorted, and a
// name that two labels would share told apart by a number (`a_b`, `a_b_2`) in the order of their own names.
Labels ExposedLabels(const Labels& labels);

}  // namespace persia::agent
