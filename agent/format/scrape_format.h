// Chooses the format of a scrape and its encoding by the headers of the request.
//
//   const ScrapeFormat format = AcceptedFormat(request.Header("Accept"));
//   response.content_type = ContentType(format);
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace persia::agent {

enum class ScrapeFormat : uint8_t {
  kText,         // text exposition format 0.0.4
  kOpenMetrics,  // OpenMetrics 1.0 text
  kProtobuf,     // delimited messages; the only one with created timestamps
};

[[nodiscard]] std::string_view ContentType(ScrapeFormat format);

// The format for a client with this `Accept` header (RFC 9110, section 12.5.1, and
// https://prometheus.io/docs/instrumenting/content_negotiation/):
//   - Of each format the most specific range counts. The format with the highest quality is taken; of several, the first of
//     protobuf, OpenMetrics, text.
//   - A wildcard stands for text alone: a client that reads another format names it. A client that accepts none of ours gets
//     text, too.
//   - The parameter `escaping` has no meaning: all readers take the names as they are (model/series_labels.h).
// A malformed range is ignored.
[[nodiscard]] ScrapeFormat AcceptedFormat(std::string_view accept);

// Whether a client with this `Accept-Encoding` header (RFC 9110, section 12.5.3) takes gzip. Without the header: no, since a
// client that did not ask may not be able to.
[[nodiscard]] bool AcceptsGzip(std::string_view accept_encoding);

}  // namespace persia::agent
