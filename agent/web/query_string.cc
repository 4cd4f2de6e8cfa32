#include "web/query_string.h"

#include <algorithm>
#include <charconv>

namespace persia::agent {
namespace {

// `%2F` and `+`.
std::string Decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(&text[i + 1], &text[i + 3], code, 16).ptr == &text[i + 3]) {
      out += static_cast<char>(code);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

Parameters ParseParameters(std::string_view query) {
  Parameters out;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view part = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (part.empty()) continue;
    const size_t equals = std::min(part.find('='), part.size());
    out.emplace_back(Decoded(part.substr(0, equals)), Decoded(part.substr(std::min(equals + 1, part.size()))));
  }
  return out;
}

}  // namespace persia::agent
