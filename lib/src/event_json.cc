// An event as JSON: {"name": ..., "type": ..., "metadata": {...}, "timestamp": ...}.
#include <exception>

#include "json.h"
#include "persia/metrics/events.h"

namespace persia::metrics::events {
namespace {

void AppendValue(std::string& out, const Event::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    json::AppendString(out, *text);
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    out += *flag ? "true" : "false";
  } else if (const auto* whole = std::get_if<int64_t>(&value)) {
    json::AppendNumber(out, *whole);
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
  json::AppendNumber(out, timestamp);
  return out + "}";
}

std::optional<Event> Event::Deserialize(std::string_view text) {
  Event event;
  bool named = false;
  json::Reader reader(text);
  reader.Object([&](const std::string& key) {
    if (key == "name") {
      event.name = reader.String();
      named = true;
    } else if (key == "type" || key == "event_type") {
      event.type = reader.String();
    } else if (key == "timestamp") {
      const Value value = reader.Scalar();
      if (const auto* whole = std::get_if<int64_t>(&value)) {
        event.timestamp = *whole;
      } else {
        reader.Fail();
      }
    } else if (key == "metadata") {
      // Python writes None for an event without any.
      reader.ObjectOrNull([&](const std::string& name) { event.metadata.emplace_back(name, reader.Scalar()); });
    } else {
      reader.Skip();
    }
  });
  if (!reader.ok() || !reader.AtEnd() || !named) {
    return std::nullopt;
  }
  return event;
}

}  // namespace persia::metrics::events
