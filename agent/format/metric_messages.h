// A Format of ExpositionPlan: delimited protobuf messages MetricFamily of Prometheus' client model. The part of a counter,
// gauge or untyped series is its Metric up to the value; the parts of a histogram or summary are its labels and when its count
// began. A native histogram has its classic buckets, too: a reader of protobuf need not take native histograms, and Prometheus'
// settings say which of them it stores.
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
  [[nodiscard]] static size_t PartsPerSeries(const FamilyLayout& family) {
    return family.type == MetricType::kHistogram || family.type == MetricType::kSummary ? 2 : 1;
  }
  [[nodiscard]] static size_t MaxValueBytes(const FamilyLayout& family) {
    if (family.type != MetricType::kHistogram && family.type != MetricType::kSummary) return sizeof(double);
    const size_t native_bytes = family.native ? MaxNativeBytes(family.native->buckets) : 0;
    return kMaxBytesPerSeries + (family.bounds.size() + 2) * kMaxBytesPerValue + native_bytes;
  }
  // The family's size, as a varint of fixed width: it precedes the family but is known only after it.
  static constexpr size_t kFamilyBytes = 5;
  static constexpr bool kOneHeaderPerName = false;

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
  static constexpr size_t kMaxBytesPerSeries = 2 * (1 + kMaxVarintSize);
  // A bucket: key, size, key, count, key, bound. A quantile, a sum and a count are shorter.
  static constexpr size_t kMaxBytesPerValue = 1 + 1 + 1 + kMaxVarintSize + 1 + 8;

  static void WriteHistogram(PartWriter& writer, const FamilyLayout& family, const double* values);
  static void WriteSummary(PartWriter& writer, const FamilyLayout& family, const double* values);
};

}  // namespace persia::agent
