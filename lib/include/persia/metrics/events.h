// Events: things that happened, with what is known about them.
//
//   persia::metrics::events::Record("checkpoint", "my_app", {{"bytes", int64_t{1024}}});
//
// An event counts under its (type, name), together with when it last happened and the intervals between. Besides, the handler
// of its type takes it: the one that Configure gave, else one that puts its record, with the metadata, into a ring from which
// the agent reads. A ring that is full overwrites its oldest record; the counts never lose one. A handler that throws costs its
// event, and one line in the log; one that blocks holds up its own caller only. The model is torchelastic's events API
// (https://pytorch.org/docs/stable/elastic/events.html).
//
// Thread safety: any function, any thread. Handlers are called by the threads that record, several at once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "persia/metrics/export.h"

namespace persia::metrics::events {

// null, boolean, integer, float or string; strings are not owned.
using MetadataValue = std::variant<std::monostate, bool, int64_t, double, std::string_view>;
using MetadataEntry = std::pair<std::string_view, MetadataValue>;

// The type of the events of torchelastic itself, and the default.
inline constexpr std::string_view kDefaultType = "torchelastic";

// Records that `name` happened now. What does not fit into a record of the ring (about 900 bytes of metadata) is left out of
// it, entry by entry, and the record says so.
// Takes no lock, but for the first event of a (type, name), and once a handler was configured.
PERSIA_METRICS_API void Record(std::string_view name, std::string_view type, std::span<const MetadataEntry> metadata) noexcept;

inline void Record(std::string_view name, std::string_view type = kDefaultType,
                   std::initializer_list<MetadataEntry> metadata = {}) noexcept {
  Record(name, type, std::span<const MetadataEntry>(metadata.begin(), metadata.size()));
}

// An event with all that belongs to it.
struct PERSIA_METRICS_API Event {
  using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;

  std::string name = {};
  std::string type = std::string(kDefaultType);
  std::vector<std::pair<std::string, Value>> metadata = {};
  int64_t timestamp = 0;  // in milliseconds since 1970; 0: now, when it is recorded

  // As a JSON object with the keys name, type, metadata and timestamp, in one line.
  [[nodiscard]] std::string Serialize() const;
  // What Serialize wrote; the key `event_type` may stand for `type`, others are left out. Nothing: it is not such an object.
  static std::optional<Event> Deserialize(std::string_view json);

  bool operator==(const Event&) const = default;
};

PERSIA_METRICS_API void RecordEvent(const Event& event) noexcept;

// Takes events somewhere.
class PERSIA_METRICS_API EventHandler {
 public:
  EventHandler() = default;
  virtual ~EventHandler();
  EventHandler(const EventHandler&) = delete;
  EventHandler& operator=(const EventHandler&) = delete;
  virtual void Record(const Event& event) = 0;
};

// Takes them nowhere.
class PERSIA_METRICS_API NullEventHandler : public EventHandler {
 public:
  void Record(const Event& event) override;
};

// Prints each to stdout, as Serialize has it, a line each.
class PERSIA_METRICS_API ConsoleEventHandler : public EventHandler {
 public:
  void Record(const Event& event) override;
};

// Puts their records into the ring from which the agent reads. What all types have at first.
class PERSIA_METRICS_API ExportEventHandler : public EventHandler {
 public:
  void Record(const Event& event) override;
};

// The handler of one type, from now on; of an empty type: of all types that have none of their own. A null pointer takes it
// back.
PERSIA_METRICS_API void Configure(std::shared_ptr<EventHandler> handler, std::string_view type = kDefaultType) noexcept;

}  // namespace persia::metrics::events
