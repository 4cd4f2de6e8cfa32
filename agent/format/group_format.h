// The formats in which a PushGateway reads a group: the text exposition format 0.0.4, which whatever takes its place reads too,
// and delimited protobuf, which is shorter, and less work to write and to read.
#pragma once

#include <cstdint>
#include <string_view>

namespace persia::agent {

enum class GroupFormat : uint8_t { kText, kProtobuf };

// "text" or "protobuf".
[[nodiscard]] constexpr std::string_view ToString(GroupFormat format) {
  return format == GroupFormat::kText ? "text" : "protobuf";
}

inline constexpr std::string_view kTextContentType = "text/plain; version=0.0.4; charset=utf-8";

[[nodiscard]] constexpr std::string_view ContentType(GroupFormat format) {
  return format == GroupFormat::kText
             ? kTextContentType
             : "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";
}

}  // namespace persia::agent
