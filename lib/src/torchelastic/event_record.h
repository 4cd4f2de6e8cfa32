// Records an event in this process's segment, without its handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "persia/metrics/events.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace events {

[[nodiscard]] uint64_t NowInMilliseconds();

// Counts the event. False: its series was refused, or metrics are disabled; then it gets no record either.
bool CountEvent(std::string_view name, std::string_view type, uint64_t unix_ms) noexcept;
// Writes the event's record to the ring. Of entries with one name, it has the last one. The record has the number of metadata
// entries that did not fit, plus `more` entries that the caller left out. REQUIRES: CountEvent returned true.
void AppendToRing(std::string_view name, std::string_view type, std::span<const MetadataEntry> metadata, uint64_t unix_ms,
                  size_t more = 0) noexcept;

}  // namespace events
}  // namespace abi_1
}  // namespace persia::metrics
