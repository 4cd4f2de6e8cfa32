// The part of OpenMetrics 1.0 that is written here; `line` is that of text_format.cc:
//
//   text   := family* "# EOF" LF
//   family := [ "# HELP " name " " help LF ] "# TYPE " name " " type LF [ "# UNIT " name " " unit LF ] line+
//
// The name of a counter's family lacks the `_total` of its lines. UNIT is written only if the name ends with "_" and the unit.
// In help, `"` is escaped, too. The values of `le` and `quantile` are floating-point numbers: `le="1.0"`; Prometheus 3 writes
// those of the other formats in the same way when it scrapes. There are no `_created` lines: Prometheus reads when a count
// began from protobuf.
#include "format/open_metrics_format.h"

#include <algorithm>

#include "format/number.h"

namespace persia::agent {
namespace {

constexpr std::string_view kTotal = "_total";

std::string FloatText(double number) {
  std::string text = LabelText(number);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

// Without the suffix; REQUIRES: the name has it.
std::string WithoutTotal(const std::string& name) { return name.substr(0, name.size() - kTotal.size()); }

bool IsAllowed(const FamilyLayout& counter, const Layout& layout) {
  if (!counter.name.ends_with(kTotal) || counter.name == kTotal) return false;
  const std::string name = WithoutTotal(counter.name);
  return FamiliesNamed(layout, name).empty() && FamiliesNamed(layout, name + "_created").empty();
}

std::string_view OpenMetricsType(MetricType type) { return type == MetricType::kUntyped ? "unknown" : TypeName(type); }

}  // namespace

std::shared_ptr<const Layout> OpenMetricsFormat::Adapt(std::shared_ptr<const Layout> layout) {
  const auto is_wrong = [&](const FamilyLayout& family) {
    return family.type == MetricType::kCounter && !IsAllowed(family, *layout);
  };
  if (std::ranges::none_of(layout->families, is_wrong)) return layout;
  auto adapted = std::make_shared<Layout>(*layout);
  for (FamilyLayout& family : adapted->families)
    if (is_wrong(family)) family.type = MetricType::kUntyped;
  return adapted;
}

void OpenMetricsFormat::AppendHeader(const FamilyLayout& family, std::string& out) {
  const std::string name = family.type == MetricType::kCounter ? WithoutTotal(family.name) : family.name;
  const auto begin_line = [&](std::string_view comment) {
    out += comment;
    out += name;
    out += ' ';
  };
  if (!family.help.empty()) {
    begin_line("# HELP ");
    AppendEscaped(out, family.help, /*escape_quotes=*/true);
    out += '\n';
  }
  begin_line("# TYPE ");
  out += OpenMetricsType(family.type);
  out += '\n';
  if (!family.unit.empty() && name.ends_with('_' + family.unit)) {
    begin_line("# UNIT ");
    out += family.unit;
    out += '\n';
  }
}

void OpenMetricsFormat::AppendSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity,
                                     FixedParts& parts) {
  AppendTextSeries(family, series, identity, &FloatText, parts);
}

}  // namespace persia::agent
