// From the names that programs give to names that Prometheus takes.
//
// A program names a metric by (group, name), both any text; Prometheus wants `[a-zA-Z_:][a-zA-Z0-9_:]*` for a metric and
// `[a-zA-Z_][a-zA-Z0-9_]*` for a label, keeps names that start with `__` to itself, and gives some labels a meaning of their
// own. What maps two different names to one is told apart by whoever lays out the series.
// Thread safety: pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "model/snapshot.h"

namespace persia::agent {

// A metric as the program names it.
struct SourceMetric {
  std::string_view group;
  std::string_view name;
  MetricType type = MetricType::kUntyped;
};

// Gives a metric its exposed name. What rules replace.
class Naming {
 public:
  virtual ~Naming() = default;
  // The family's name, valid for Prometheus. Always the same for the same metric.
  [[nodiscard]] virtual std::string FamilyName(const SourceMetric& metric) const = 0;
};

// `<group>_<name>`, with `_` for each run of what Prometheus cannot take. Group `persia` and an empty group add no prefix.
class PlainNaming : public Naming {
 public:
  [[nodiscard]] std::string FamilyName(const SourceMetric& metric) const override;
};

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
