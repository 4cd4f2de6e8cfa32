// Recording an event in this process's segment, apart from who handles it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "persia/metrics/events.h"

namespace persia::metrics::events {

[[nodiscard]] uint64_t NowInMilliseconds();

// Counts it. False: it has no place, and so no record either.
bool CountEvent(std::string_view name, std::string_view type, uint64_t unix_ms) noexcept;
// Puts its record into the ring; what does not fit of the metadata is counted there, with `more` entries that the caller left
// out. REQUIRES: it was counted.
void KeepRecord(std::string_view name, std::string_view type, std::span<const MetadataEntry> metadata, uint64_t unix_ms,
                size_t more = 0) noexcept;

}  // namespace persia::metrics::events
