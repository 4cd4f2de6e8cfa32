// Families as delimited protobuf, messages MetricFamily of Prometheus' client model: what ExpositionPlan asks of a format. A
// part is all of a Metric that stands before the value of a counter, a gauge or an untyped one, and its labels of the others.
//
// Numbers go as they are, eight bytes each, where a text has up to 24 digits of them, to be found here and read there.
//
// Thread safety: no state.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "format/exposition_plan.h"
#include "format/protobuf_wire.h"
#include "model/snapshot.h"

namespace persia::agent {

struct MetricMessages {
  static void AppendHeader(const FamilyLayout& family, std::string& out);
  static void AppendSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity, FixedParts& parts);
  [[nodiscard]] static size_t PartsPerSeries(const FamilyLayout& /*family*/) { return 1; }
  [[nodiscard]] static size_t MostBytes(const FamilyLayout& family) {
    if (family.type != MetricType::kHistogram && family.type != MetricType::kSummary) return sizeof(double);
    return kMostBytesPerSeries + family.ValuesPerSeries() * kMostBytesPerValue;
  }
  static constexpr size_t kFamilyBytes = 5;  // its size stands before it and is known behind it: the widest one fits in
  static constexpr size_t kRoom = 0;

  static char* BeginFamily(PartWriter& writer) {
    char* const begin = writer.position();
    writer.set_position(begin + kFamilyBytes);
    return begin;
  }
  static void EndFamily(const PartWriter& writer, char* begin);
  static void WriteSeries(PartWriter& writer, const FamilyLayout& family, const double* values) {
    if (family.type == MetricType::kHistogram) {
      WriteHistogram(writer, family, values);
    } else if (family.type == MetricType::kSummary) {
      WriteSummary(writer, family, values);
    } else {
      writer.CopyPart();
      writer.set_position(PutFixed(writer.position(), BitsOf(*values)));
    }
  }

 private:
  // The keys and sizes of a Metric and of its Histogram or Summary.
  static constexpr size_t kMostBytesPerSeries = 2 * (1 + kLongestVarint);
  // A bucket: key, size, key, count, key, bound. A quantile, a sum and a count are shorter.
  static constexpr size_t kMostBytesPerValue = 1 + 1 + 1 + kLongestVarint + 1 + 8;

  static void WriteHistogram(PartWriter& writer, const FamilyLayout& family, const double* values);
  static void WriteSummary(PartWriter& writer, const FamilyLayout& family, const double* values);
};

}  // namespace persia::agent
