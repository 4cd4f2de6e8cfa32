// A Format of ExpositionPlan: text exposition format 0.0.4. A part is the `name{labels} ` of a line.
//
// Thread safety: no state.
#pragma once

#include <cstddef>
#include <string>

#include "format/exposition_plan.h"
#include "format/number.h"
#include "model/snapshot.h"

namespace persia::agent {

struct TextFormat {
  static void AppendHeader(const FamilyLayout& family, std::string& out);
  static void AppendSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity, FixedParts& parts);
  [[nodiscard]] static size_t PartsPerSeries(const FamilyLayout& family) {
    // The `_count` of a histogram is a line but not a value: it is the sum of the buckets.
    return family.ValuesPerSeries() + (family.type == MetricType::kHistogram ? 1 : 0);
  }
  [[nodiscard]] static size_t MaxValueBytes(const FamilyLayout& family) {
    return PartsPerSeries(family) * (kMaxNumberSize + 1);
  }
  static constexpr size_t kFamilyBytes = 0;
  static constexpr bool kOneHeaderPerName = true;

  static char* BeginFamily(const PartWriter& writer) { return writer.position(); }
  static void EndFamily(const PartWriter& /*writer*/, const char* /*begin*/) {}
  static void WriteSeries(PartWriter& writer, const FamilyLayout& family, const double* values) {
    if (family.type == MetricType::kHistogram) {
      WriteHistogram(writer, values, family.bounds.size() + 1);
    } else if (family.type == MetricType::kSummary) {
      WriteSummary(writer, values, family.bounds.size());
    } else {
      WriteLine(writer, *values);
    }
  }

 private:
  static void WriteLine(PartWriter& writer, double value) {
    writer.CopyPart();
    char* const end = PrintNumber(writer.position(), value);
    *end = '\n';
    writer.set_position(end + 1);
  }
  static void WriteHistogram(PartWriter& writer, const double* values, size_t buckets);
  static void WriteSummary(PartWriter& writer, const double* values, size_t quantiles);
};

}  // namespace persia::agent
