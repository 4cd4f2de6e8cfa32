// Counts each event, and passes it to the handler of its type.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "event_record.h"
#include "handler_table.h"
#include "json.h"
#include "log.h"
#include "persia/metrics/events.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace events {
namespace {

constinit HandlerTable<EventHandler, ForkLock::kEventHandlers> handlers;

// Null: the type has the exporting handler.
std::shared_ptr<EventHandler> HandlerOf(std::string_view type) {
  auto handler = handlers.Find(type);
  if (handler == nullptr) return nullptr;
  // Not a derived class, which may override Record.
  return SameClass(*handler, ExportEventHandler()) ? nullptr : handler;
}

std::vector<MetadataEntry> Views(const Event& event) {
  std::vector<MetadataEntry> views;
  for (const auto& [key, value] : event.metadata)
    views.emplace_back(key, std::visit([](const auto& held) { return MetadataValue(held); }, value));
  return views;
}

Event MakeEvent(std::string_view name, std::string_view type, Span<const MetadataEntry> metadata, uint64_t unix_ms) {
  Event event{.name = std::string(name), .type = std::string(type), .timestamp = static_cast<int64_t>(unix_ms)};
  for (const auto& [key, value] : metadata) {
    event.metadata.emplace_back(key, std::visit(
                                         [](const auto& held) -> Event::Value {
                                           if constexpr (std::is_same_v<decltype(held), const std::string_view&>)
                                             return std::string(held);
                                           else
                                             return held;
                                         },
                                         value));
  }
  return event;
}

void CallHandler(EventHandler& handler, const Event& event) try { handler.Record(event); } catch (...) {
  static std::atomic<bool> logged = false;
  LogLineOnce(logged, {"an event handler threw an exception; event \"", event.name, "\" of type \"", event.type,
                       "\" is lost, except for its count"});
}

void AppendValue(std::string& out, const Event::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value))
    json::AppendString(out, *text);
  else if (const auto* flag = std::get_if<bool>(&value))
    out += *flag ? "true" : "false";
  else if (const auto* whole = std::get_if<int64_t>(&value))
    out += std::to_string(*whole);
  else if (const auto* number = std::get_if<double>(&value))
    json::AppendNumber(out, *number);
  else
    out += "null";
}

}  // namespace

// {"name": ..., "type": ..., "metadata": {...}, "timestamp": ...}
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

void Record(std::string_view type, std::string_view name, Span<const MetadataEntry> metadata) noexcept try {
  const uint64_t now = NowInMilliseconds();
  const bool counted = CountEvent(name, type, now);
  const auto handler = handlers.ever_set() ? HandlerOf(type) : nullptr;
  if (handler != nullptr)
    CallHandler(*handler, MakeEvent(name, type, metadata, now));
  else if (counted)
    AppendToRing(name, type, metadata, now);
} catch (const std::exception&) {
  Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
}

void RecordEvent(const Event& event) noexcept try {
  const uint64_t when = event.timestamp > 0 ? static_cast<uint64_t>(event.timestamp) : NowInMilliseconds();
  const bool counted = CountEvent(event.name, event.type, when);
  const auto handler = HandlerOf(event.type);
  if (handler == nullptr) {
    if (counted) AppendToRing(event.name, event.type, Views(event), when);
    return;
  }
  Event timed = event;
  timed.timestamp = static_cast<int64_t>(when);
  CallHandler(*handler, timed);
} catch (const std::exception&) {
  Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
}

EventHandler::~EventHandler() = default;

void NullEventHandler::Record(const Event& /*event*/) {}

void ConsoleEventHandler::Record(const Event& event) {
  // One call, so that lines of several threads do not mix.
  const std::string line = event.Serialize() + '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

void ExportEventHandler::Record(const Event& event) {
  AppendToRing(event.name, event.type, Views(event), static_cast<uint64_t>(event.timestamp));
}

void Configure(std::shared_ptr<EventHandler> handler, std::string_view type) noexcept try {
  if (type.empty())
    handlers.SetDefault(std::move(handler));
  else
    handlers.Set(std::move(handler), type);
} catch (const std::exception& error) {
  LogLine({"an event handler was not configured: ", error.what()});
}

}  // namespace events
}  // namespace abi_1
}  // namespace persia::metrics
