// The formats of a push and of a scrape. All readers understand the text exposition format 0.0.4. PushGateways, and Prometheus
// servers that ask for it, also read delimited protobuf, which is shorter, takes less processor time on both sides, and has
// created timestamps.
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

// The format for a client with this `Accept` header (RFC 9110, section 12.5.1): protobuf if the client names it and does not
// prefer text, else text, also for a client that accepts neither. A malformed range is ignored.
[[nodiscard]] ExpositionFormat AcceptedFormat(std::string_view accept);

// Whether a client with this `Accept-Encoding` header (RFC 9110, section 12.5.3) takes gzip. Without the header: no, since a
// client that did not ask may not be able to.
[[nodiscard]] bool AcceptsGzip(std::string_view accept_encoding);

}  // namespace persia::agent
