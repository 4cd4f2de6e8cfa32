#include "format/scrape_format.h"

#include <strings.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <optional>

namespace persia::agent {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// Removes the text up to the separator from `rest`, and returns it.
std::string_view Cut(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view cut = rest.substr(0, end);
  rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  return Trim(cut);
}

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view Unquoted(std::string_view value) {
  const bool is_quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  return is_quoted ? value.substr(1, value.size() - 2) : value;
}

// One of the header's media ranges or codings: its type, and the parameters that matter here.
struct MediaRange {
  explicit MediaRange(std::string_view text) : type(Cut(text, ';')) {
    while (!text.empty()) {
      std::string_view value = Cut(text, ';');
      const std::string_view name = Cut(value, '=');
      value = Unquoted(Trim(value));
      if (EqualIgnoringCase(name, "q")) {
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), quality);
        if (error != std::errc() || end != value.data() + value.size() || !(quality >= 0 && quality <= 1)) quality = 0;
      } else if (EqualIgnoringCase(name, "version")) {
        version = value;
      } else if (EqualIgnoringCase(name, "proto")) {
        message = value;
      } else if (EqualIgnoringCase(name, "encoding")) {
        encoding = value;
      }
    }
  }

  [[nodiscard]] bool Is(std::string_view media_type) const { return EqualIgnoringCase(type, media_type); }

  std::string_view type;
  std::string_view version = {};
  std::string_view message = {};
  std::string_view encoding = {};
  double quality = 1;
};

// What the header says about a format: the quality of the most specific range.
struct Offer {
  void Take(const MediaRange& range, int of) {
    if (of < specificity) return;
    specificity = of;
    quality = range.quality;
  }

  int specificity = 0;
  double quality = 0;
};

}  // namespace

std::string_view ContentType(ScrapeFormat format) {
  switch (format) {
    case ScrapeFormat::kProtobuf:
      return "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";
    case ScrapeFormat::kOpenMetrics:
      return "application/openmetrics-text; version=1.0.0; charset=utf-8";
    case ScrapeFormat::kText:
      break;
  }
  return "text/plain; version=0.0.4; charset=utf-8";
}

ScrapeFormat AcceptedFormat(std::string_view accept) {
  std::array<Offer, 3> offers;
  const auto offer = [&](ScrapeFormat format) -> Offer& { return offers[static_cast<size_t>(format)]; };
  while (!accept.empty()) {
    const MediaRange range(Cut(accept, ','));
    const bool any_version = range.version.empty();
    if (range.Is("application/vnd.google.protobuf")) {
      const bool is_ours = range.message == "io.prometheus.client.MetricFamily" && range.encoding == "delimited";
      if (is_ours) offer(ScrapeFormat::kProtobuf).Take(range, 4);
    } else if (range.Is("application/openmetrics-text")) {
      if (any_version || range.version == "1.0.0") offer(ScrapeFormat::kOpenMetrics).Take(range, any_version ? 3 : 4);
    } else if (range.Is("text/plain")) {
      if (any_version || range.version == "0.0.4") offer(ScrapeFormat::kText).Take(range, any_version ? 3 : 4);
    } else if (range.Is("text/*")) {
      offer(ScrapeFormat::kText).Take(range, 2);
    } else if (range.Is("*/*")) {
      offer(ScrapeFormat::kText).Take(range, 1);
    }
  }
  ScrapeFormat best = ScrapeFormat::kText;
  for (const ScrapeFormat format : {ScrapeFormat::kOpenMetrics, ScrapeFormat::kProtobuf})
    if (offer(format).quality > 0 && offer(format).quality >= offer(best).quality) best = format;
  return best;
}

bool AcceptsGzip(std::string_view accept_encoding) {
  bool by_wildcard = false;
  while (!accept_encoding.empty()) {
    const MediaRange coding(Cut(accept_encoding, ','));
    if (coding.Is("gzip") || coding.Is("x-gzip")) return coding.quality > 0;
    if (coding.Is("*")) by_wildcard = coding.quality > 0;
  }
  return by_wildcard;
}

}  // namespace persia::agent
