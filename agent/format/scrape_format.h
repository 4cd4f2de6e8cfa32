// Chooses the format of a scrape and its encoding by the headers of the request.
//
//   const ScrapeFormat format = AcceptedFormat(request.Header("Accept"));
//   renderer.Render(snapshot, body, format.escaping);
//   response.content_type = ContentType(format);
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/name_escaping.h"

namespace persia::agent {

struct ScrapeFormat {
  enum class Kind : uint8_t {
    kText,         // text exposition format 0.0.4
    kText1,        // the same as version 1.0.0, for a client that takes names in quotes
    kOpenMetrics,  // OpenMetrics 1.0 text
    kProtobuf,     // delimited messages; the only one with created timestamps
  };
  Kind kind = Kind::kText;
  NameEscaping escaping = NameEscaping::kUnderscores;
  bool names_escaping = false;  // the client named it, and so does Content-Type

  friend bool operator==(const ScrapeFormat&, const ScrapeFormat&) = default;
};

[[nodiscard]] std::string ContentType(const ScrapeFormat& format);

// The format for a client with this `Accept` header (RFC 9110, section 12.5.1, and
// https://prometheus.io/docs/instrumenting/content_negotiation/):
//   - Of each format the most specific range counts. The format with the highest quality is taken; of several, the first of
//     protobuf, OpenMetrics, text 1.0.0, text 0.0.4.
//   - A wildcard stands for text 0.0.4 alone: a client that reads another format names it. A client that accepts none of ours
//     gets text 0.0.4, too.
//   - The names are escaped as the range's parameter `escaping` says, by default with underscores. Prometheus sends it only
//   with
//     the text formats: protobuf without it takes that of another range.
// A malformed range is ignored.
[[nodiscard]] ScrapeFormat AcceptedFormat(std::string_view accept);

// Whether a client with this `Accept-Encoding` header (RFC 9110, section 12.5.3) takes gzip. Without the header: no, since a
// client that did not ask may not be able to.
[[nodiscard]] bool AcceptsGzip(std::string_view accept_encoding);

}  // namespace persia::agent
