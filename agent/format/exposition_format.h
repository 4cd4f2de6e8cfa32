// The formats of a push; scrape_format.h has those of a scrape. All readers understand the text exposition format 0.0.4.
// PushGateways also read delimited protobuf, which is shorter, takes less processor time on both sides, and has created
// timestamps.
#pragma once

#include <cstdint>
#include <string_view>

namespace persia::agent {

enum class ExpositionFormat : uint8_t { kText, kProtobuf };

// "text" or "protobuf".
[[nodiscard]] constexpr std::string_view ToString(ExpositionFormat format) {
  return format == ExpositionFormat::kText ? "text" : "protobuf";
}

[[nodiscard]] constexpr std::string_view ContentType(ExpositionFormat format) {
  return format == ExpositionFormat::kText
             ? "text/plain; version=0.0.4; charset=utf-8"
             : "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";
}

}  // namespace persia::agent
