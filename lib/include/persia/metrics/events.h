// Events: things that happened, with what is known about them.
//
// An event counts under its (type, name), together with when it last happened and the intervals between; and its record, with
// the metadata, goes into a ring from which the agent reads. A ring that is full overwrites its oldest record; the counts never
// lose one. The model is torchelastic's events API (https://pytorch.org/docs/stable/elastic/events.html).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "persia/metrics/export.h"

namespace persia::metrics::events {

// null, boolean, integer, float or string; strings are not owned.
using MetadataValue = std::variant<std::monostate, bool, int64_t, double, std::string_view>;
using MetadataEntry = std::pair<std::string_view, MetadataValue>;

// The type of the events of torchelastic itself, and the default.
inline constexpr std::string_view kDefaultType = "torchelastic";

// Records that `name` happened now. What does not fit into a record of the ring (about 900 bytes of metadata) is left out of
// it, entry by entry, and the record says so.
// Thread safety: any thread. Takes no lock, but for the first event of a (type, name).
PERSIA_METRICS_API void Record(std::string_view name, std::string_view type, std::span<const MetadataEntry> metadata) noexcept;

inline void Record(std::string_view name, std::string_view type = kDefaultType,
                   std::initializer_list<MetadataEntry> metadata = {}) noexcept {
  Record(name, type, std::span<const MetadataEntry>(metadata.begin(), metadata.size()));
}

}  // namespace persia::metrics::events
