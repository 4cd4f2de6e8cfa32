// The formats of a push. Every push target reads the text exposition format 0.0.4. PushGateways also read delimited protobuf,
// which is shorter and takes less processor time on both sides.
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
