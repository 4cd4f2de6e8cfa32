#include "format/grouping_key.h"

#include <string_view>

#include "base/encoding.h"

namespace persia::agent {
namespace {

bool NeedsBase64(std::string_view value) {
  return value.empty() || value == "." || value == ".." || value.find('/') != std::string_view::npos;
}

// A path has no empty segments: an empty value is "=".
void AppendSegments(std::string& path, std::string_view label, std::string_view value) {
  path += '/';
  path += label;
  path += NeedsBase64(value) ? "@base64/" + (value.empty() ? "=" : Base64UrlEncode(value)) : '/' + PercentEncode(value);
}

}  // namespace

std::string GroupingKeyPath(const Identity& identity) {
  std::string path = "/metrics";
  AppendSegments(path, "job", identity.job);
  for (const auto& [label, value] : identity.labels) AppendSegments(path, label, value);
  return path;
}

}  // namespace persia::agent
