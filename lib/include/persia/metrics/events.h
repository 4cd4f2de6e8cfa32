// Events: records that something happened, with metadata.
//
//   persia::metrics::events::Record("my_app", "checkpoint", {{"bytes", int64_t{1024}}});
//
// For each (type, name) the library counts the events and keeps the time of the last one and the intervals between them. In
// addition, the handler of the event's type receives the event. Configure sets a type's handler. The default handler writes the
// event with its metadata into a ring in the segment, from which the agent reads. A full ring overwrites its oldest record;
// counts are never lost. If a handler throws, its event is lost except for the count, and the first such failure is logged. A
// handler that blocks delays only the thread that called it. The model is torchelastic's events API
// (https://pytorch.org/docs/stable/elastic/events.html).
//
// Thread safety: any function, from any thread. A handler runs in the threads that record events, several at once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "persia/metrics/export.h"
#include "persia/metrics/span.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace events {

// A value of an event's metadata: null, boolean, integer, float or string. Strings are not owned.
using MetadataValue = std::variant<std::monostate, bool, int64_t, double, std::string_view>;
// A name and its value. The name is not owned.
using MetadataEntry = std::pair<std::string_view, MetadataValue>;

// The default type, which is also that of torchelastic's own events.
inline constexpr std::string_view kDefaultType = "torchelastic";

// Records that `name` happened now. The type is what the group is for a metric. A ring record has space for about 900 bytes of
// metadata. If more are given, the longest texts are shortened, and end with "..."; entries that do not fit even then are left
// out, and the record counts them. Of entries with one name, it has the last one. Takes a lock for the first event of a (type,
// name), and for every event once a handler is configured; otherwise none.
PERSIA_METRICS_API void Record(std::string_view type, std::string_view name, Span<const MetadataEntry> metadata) noexcept;

// The same, for metadata in braces: `Record("my_app", "checkpoint", {{"bytes", int64_t{1024}}})`.
inline void Record(std::string_view type, std::string_view name, std::initializer_list<MetadataEntry> metadata = {}) noexcept {
  Record(type, name, Span<const MetadataEntry>(metadata.begin(), metadata.size()));
}
// The same for an event of type kDefaultType without metadata.
inline void Record(std::string_view name) noexcept { Record(kDefaultType, name); }

// How many events (`type`, `name`) this process has recorded.
[[nodiscard]] PERSIA_METRICS_API uint64_t Count(std::string_view type, std::string_view name) noexcept;

// An event that owns its strings.
struct PERSIA_METRICS_API Event {
  // A MetadataValue that owns its string.
  using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;

  std::string name = {};                                     // what happened
  std::string type = std::string(kDefaultType);              // selects the handler
  std::vector<std::pair<std::string, Value>> metadata = {};  // names and values, in any order
  int64_t timestamp = 0;                                     // in milliseconds since 1970; 0: now, when it is recorded

  // The event as a JSON object in one line, with the keys name, type, metadata and timestamp. Throws std::bad_alloc only.
  [[nodiscard]] std::string Serialize() const;

  // Whether all fields are equal.
  friend bool operator==(const Event& a, const Event& b) {
    return a.name == b.name && a.type == b.type && a.metadata == b.metadata && a.timestamp == b.timestamp;
  }
  // Whether a field differs.
  friend bool operator!=(const Event& a, const Event& b) { return !(a == b); }
};

// Records `event`, with its timestamp.
PERSIA_METRICS_API void RecordEvent(const Event& event) noexcept;

// Receives the events of the types that it is configured for.
class PERSIA_METRICS_API EventHandler {
 public:
  EventHandler() = default;
  virtual ~EventHandler();
  EventHandler(const EventHandler&) = delete;
  EventHandler& operator=(const EventHandler&) = delete;
  // Handles one event, in the thread that recorded it.
  virtual void Record(const Event& event) = 0;
};

// Drops events.
class PERSIA_METRICS_API NullEventHandler : public EventHandler {
 public:
  // Does nothing.
  void Record(const Event& event) override;
};

// Prints each event to stdout, as the line that Serialize returns.
class PERSIA_METRICS_API ConsoleEventHandler : public EventHandler {
 public:
  // Prints the event, and flushes stdout.
  void Record(const Event& event) override;
};

// Writes events into the ring from which the agent reads. The default handler of all types.
class PERSIA_METRICS_API ExportEventHandler : public EventHandler {
 public:
  // Writes the event. Metadata that has no space in a record is shortened or left out, and counted.
  void Record(const Event& event) override;
};

// Sets the handler of `type`. An empty `type` sets the default handler, for types without their own. A null `handler` removes
// it.
PERSIA_METRICS_API void Configure(std::shared_ptr<EventHandler> handler, std::string_view type = kDefaultType) noexcept;

}  // namespace events
}  // namespace abi_1
}  // namespace persia::metrics
