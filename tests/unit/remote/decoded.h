// Decodes remote write requests with protobuf's own code into one line a series: name{labels} value @timestamp.
#pragma once

#include <bit>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "remote/snappy_block.h"
#include "remote_write.pb.h"

namespace persia::agent {

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

inline std::vector<std::string> LinesOfBody(std::string_view body) {
  const auto message = SnappyUncompress(body, 64 << 20);
  return message ? Lines(*message) : std::vector<std::string>{"(no snappy)"};
}

}  // namespace persia::agent
