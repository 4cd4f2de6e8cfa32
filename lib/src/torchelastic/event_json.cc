// Writes an event as JSON: {"name": ..., "type": ..., "metadata": {...}, "timestamp": ...}.

#include <cstdint>
#include <string>
#include <variant>

#include "json.h"
#include "persia/metrics/events.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace events {
namespace {

void AppendValue(std::string& out, const Event::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    json::AppendString(out, *text);
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    out += *flag ? "true" : "false";
  } else if (const auto* whole = std::get_if<int64_t>(&value)) {
    out += std::to_string(*whole);
  } else if (const auto* number = std::get_if<double>(&value)) {
    json::AppendNumber(out, *number);
  } else {
    out += "null";
  }
}

}  // namespace

std::string Event::Serialize() const {
  std::string out = "{\"name\": ";
  json::AppendString(out, name);
  out += ", \"type\": ";
  json::AppendString(out, type);
  out += ", \"metadata\": {";
  for (const auto& [key, value] : metadata) {
    out += out.ends_with('{') ? "" : ", ";
    json::AppendString(out, key);
    out += ": ";
    AppendValue(out, value);
  }
  out += "}, \"timestamp\": ";
  out += std::to_string(timestamp);
  return out + "}";
}

}  // namespace events
}  // namespace abi_1
}  // namespace persia::metrics
