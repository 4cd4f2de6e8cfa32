// A Format of ExpositionPlan: text exposition format 0.0.4. A part is the `name{labels} ` of a line.
//
// Thread safety: no state.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "format/exposition_plan.h"
#include "format/number.h"
#include "model/snapshot.h"

namespace persia::agent {

// In help and in quotes, `\` and LF are escaped; in quotes, `"` is, too.
void AppendEscaped(std::string& out, std::string_view text, bool escape_quotes);
// The parts of a series. `label_text` prints the value of `le` and `quantile`.
void AppendTextSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity,
                      std::string (*label_text)(double), FixedParts& parts);

struct TextFormat {
  static void AppendHeader(const FamilyLayout& family, std::string& out);
  static void AppendSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity, FixedParts& parts);
  [[nodiscard]] static size_t PartsPerSeries(const FamilyLayout& family) {
    switch (family.type) {
      case MetricType::kHistogram:
        return family.bounds.size() + 3;
      case MetricType::kSummary:
        return family.bounds.size() + 2;
      default:
        return 1;
    }
  }
  [[nodiscard]] static size_t MaxValueBytes(const FamilyLayout& family) {
    return PartsPerSeries(family) * (kMaxNumberSize + 1);
  }
  static constexpr size_t kFamilyBytes = 0;
  static constexpr bool kOneHeaderPerName = true;

  static char* BeginFamily(const PartWriter& writer) { return writer.position(); }
  static void EndFamily(const PartWriter& /*writer*/, const char* /*begin*/) {}
  static void WriteSeries(PartWriter& writer, const FamilyLayout& family, const double* values) {
    if (family.type == MetricType::kHistogram)
      WriteHistogram(writer, family, values);
    else if (family.type == MetricType::kSummary)
      WriteSummary(writer, values, family.bounds.size());
    else
      WriteLine(writer, *values);
  }

 private:
  static void WriteLine(PartWriter& writer, double value) {
    writer.CopyPart();
    char* const end = PrintNumber(writer.position(), value);
    *end = '\n';
    writer.set_position(end + 1);
  }
  static void WriteHistogram(PartWriter& writer, const FamilyLayout& family, const double* values);
  static void WriteSummary(PartWriter& writer, const double* values, size_t quantiles);
};

}  // namespace persia::agent
