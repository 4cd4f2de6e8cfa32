// Decodes remote write requests with protobuf's own code into one line a series: name{labels} value @timestamp,
// the value being a number, "stale" or a native histogram.
#pragma once

#include <bit>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "remote/write_request.h"
#include "remote_write.pb.h"

namespace persia::agent {

// Its schema, count, sum, zero count, then INDEX:COUNT of each bucket that is written.
inline std::string Text(const persia_test::Histogram& histogram) {
  if (!histogram.has_count_int() || !histogram.has_zero_count_int()) return "(no counts)";
  if (std::bit_cast<uint64_t>(histogram.sum()) == 0x7ff0000000000002) return "stale histogram";
  std::ostringstream text;
  text << "schema " << histogram.schema() << " count " << histogram.count_int() << " sum " << histogram.sum() << " zeros "
       << histogram.zero_count_int() << " up to " << histogram.zero_threshold();
  int64_t index = 0;
  int64_t count = 0;
  int delta = 0;
  for (const auto& span : histogram.positive_spans()) {
    index += span.offset();
    for (uint32_t i = 0; i < span.length(); ++i, ++index)
      text << ' ' << index << ':' << (count += histogram.positive_deltas(delta++));
  }
  return delta == histogram.positive_deltas_size() ? text.str() : "(other deltas)";
}

inline std::string Line(const persia_test::TimeSeries& series) {
  std::string name;
  std::string labels;
  for (const auto& label : series.labels()) {
    if (label.name() == "__name__") {
      name = label.value();
    } else {
      labels += (labels.empty() ? "" : ",") + label.name() + "=" + label.value();
    }
  }
  std::ostringstream line;
  line << name << '{' << labels << '}';
  for (const auto& sample : series.samples()) {
    const auto bits = std::bit_cast<uint64_t>(sample.value());
    line << ' ';
    if (bits == 0x7ff0000000000002) {
      line << "stale";
    } else {
      line << sample.value();
    }
    line << " @" << sample.timestamp();
  }
  for (const auto& histogram : series.histograms()) line << ' ' << Text(histogram) << " @" << histogram.timestamp();
  return line.str();
}

// "(unreadable)" if it is no request.
inline std::vector<std::string> Lines(std::string_view message) {
  persia_test::WriteRequest request;
  if (!request.ParseFromArray(message.data(), static_cast<int>(message.size()))) return {"(unreadable)"};
  std::vector<std::string> lines;
  for (const auto& series : request.timeseries()) lines.push_back(Line(series));
  return lines;
}

// The metadata of a body: "name type unit: help" each.
inline std::vector<std::string> MetadataOfBody(std::string_view body) {
  persia_test::WriteRequest request;
  std::vector<std::string> lines;
  const auto message = SnappyUncompress(body, 64 << 20);
  if (!message || !request.ParseFromString(*message)) return {"(unreadable)"};
  for (const auto& family : request.metadata()) {
    lines.push_back(family.metric_family_name() + " " + persia_test::MetricMetadata::MetricType_Name(family.type()) + " " +
                    family.unit() + ": " + family.help());
  }
  return lines;
}

inline std::vector<std::string> LinesOfBody(std::string_view body) {
  const auto message = SnappyUncompress(body, 64 << 20);
  return message ? Lines(*message) : std::vector<std::string>{"(no snappy)"};
}

}  // namespace persia::agent
