// A Format of ExpositionPlan: OpenMetrics 1.0 text. A part is the `name{labels} ` of a line.
//
// Thread safety: no state.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "format/exposition_plan.h"
#include "format/text_format.h"
#include "model/snapshot.h"

namespace persia::agent {

struct OpenMetricsFormat : TextFormat {
  static void AppendHeader(const FamilyLayout& family, std::string& out);
  static void AppendSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity, FixedParts& parts);

  // Changes the type of each counter that OpenMetrics does not allow to kUntyped, so that its samples keep their names: a
  // counter without `_total`, or `x_total` beside a family `x` or `x_created`.
  static std::shared_ptr<const Layout> Adapt(std::shared_ptr<const Layout> layout);
  static constexpr std::string_view kEnd = "# EOF\n";
};

}  // namespace persia::agent
