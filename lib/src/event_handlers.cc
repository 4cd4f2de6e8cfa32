// Who takes an event, besides its counts.
#include <atomic>
#include <cstdio>
#include <exception>
#include <typeinfo>
#include <utility>

#include "event_record.h"
#include "handler_table.h"
#include "json.h"
#include "log.h"
#include "persia/metrics/events.h"

namespace persia::metrics::events {
namespace {

using Handlers = HandlerTable<EventHandler>;

// Null: the one that exports.
std::shared_ptr<EventHandler> HandlerOf(std::string_view type) {
  auto handler = Handlers::Get().Find(type);
  if (handler == nullptr) {
    return nullptr;
  }
  // Not a class made of it, which may do otherwise.
  const EventHandler& held = *handler;
  return typeid(held) == typeid(ExportEventHandler) ? nullptr : handler;
}

std::vector<MetadataEntry> Views(const Event& event) {
  std::vector<MetadataEntry> views;
  for (const auto& [key, value] : event.metadata) {
    views.emplace_back(key, std::visit([](const auto& held) { return MetadataValue(held); }, value));
  }
  return views;
}

Event Owned(std::string_view name, std::string_view type, std::span<const MetadataEntry> metadata, uint64_t unix_ms) {
  Event event{.name = std::string(name), .type = std::string(type), .timestamp = static_cast<int64_t>(unix_ms)};
  for (const auto& [key, value] : metadata) {
    event.metadata.emplace_back(key, std::visit(
                                         [](const auto& held) -> Event::Value {
                                           if constexpr (std::is_same_v<decltype(held), const std::string_view&>) {
                                             return std::string(held);
                                           } else {
                                             return held;
                                           }
                                         },
                                         value));
  }
  return event;
}

void Hand(EventHandler& handler, const Event& event) try { handler.Record(event); } catch (...) {
  static std::atomic<bool> said = false;
  LogLineOnce(said, "an event handler threw, and the event is lost but for its count: \"" + event.name + "\" of type \"" +
                        event.type + "\"");
}

}  // namespace

void Record(std::string_view name, std::string_view type, std::span<const MetadataEntry> metadata) noexcept try {
  const uint64_t now = NowInMilliseconds();
  const bool counted = CountEvent(name, type, now);
  const auto handler = Handlers::Get().untouched() ? nullptr : HandlerOf(type);
  if (handler != nullptr) {
    Hand(*handler, Owned(name, type, metadata, now));
  } else if (counted) {
    KeepRecord(name, type, metadata, now);
  }
} catch (const std::exception& error) {
  LogLine("an event was not recorded: " + std::string(error.what()));
}

void RecordEvent(const Event& event) noexcept try {
  const uint64_t when = event.timestamp > 0 ? static_cast<uint64_t>(event.timestamp) : NowInMilliseconds();
  const bool counted = CountEvent(event.name, event.type, when);
  const auto handler = HandlerOf(event.type);
  if (handler == nullptr) {
    if (counted) {
      KeepRecord(event.name, event.type, Views(event), when);
    }
    return;
  }
  Event timed = event;
  timed.timestamp = static_cast<int64_t>(when);
  Hand(*handler, timed);
} catch (const std::exception& error) {
  LogLine("an event was not recorded: " + std::string(error.what()));
}

EventHandler::~EventHandler() = default;

void NullEventHandler::Record(const Event& /*event*/) {}

void ConsoleEventHandler::Record(const Event& event) {
  // In one call, so that lines of several threads stay whole.
  const std::string line = event.Serialize() + '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

void ExportEventHandler::Record(const Event& event) {
  KeepRecord(event.name, event.type, Views(event), static_cast<uint64_t>(event.timestamp));
}

void Configure(std::shared_ptr<EventHandler> handler, std::string_view type) noexcept try {
  if (type.empty()) {
    Handlers::Get().SetDefault(std::move(handler));
  } else {
    Handlers::Get().Set(std::move(handler), type);
  }
} catch (const std::exception& error) {
  LogLine("the handler of a type of events was not configured: " + std::string(error.what()));
}

}  // namespace persia::metrics::events
