// Sets and renames the labels of one series.
//
// Thread safety: pure functions, any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/snapshot.h"

namespace persia::agent {

bool HasLabel(const Labels& labels, std::string_view name);

// Sets a label. An existing label of that name is renamed to `exported_<name>`.
void SetLabel(Labels& labels, const std::string& name, std::string value);

// Renames each label with a reserved name to `exported_<name>`, as Prometheus does, and removes labels with an empty value,
// which Prometheus treats as absent. Reserved are `job`, the labels of `identity`, and `le` or `quantile` for the types that
// use it. Returns whether anything changed.
bool FitLabels(Labels& labels, MetricType type, const Identity& identity);

}  // namespace persia::agent
