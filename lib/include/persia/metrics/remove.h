// Removes series: an agent no longer exports them, and readers of this process's values leave them out.
//
//   persia::metrics::RemoveSeries("my_app", "lag", {{"shard", "7"}});   // the shard has gone
//
// A series that is requested again by the same labels is exported again. In this process it then starts from zero, as in a new
// process. What the agent exports goes on from where it was, as after a restart of a process: within a run, no exported count
// falls. Handles from before stay valid, and are of the same series: what they count while it is removed is not shown in this
// process, but the agent adds it once the series is exported again.
//
// If other processes of the same identity (job, role, replica) still have the series, the agent goes on exporting it, with the
// counts of this process so far, as it does when a process ends; a removed gauge has no value. A forked child has the series
// that its parent had at the fork.
//
// Thread safety: any function, from any thread; they take a lock. A function that the series has (SetFunction) is ended, and
// does not run any more when the call returns, unless it made the call itself.
#pragma once

#include <initializer_list>
#include <string_view>

#include "persia/metrics/export.h"
#include "persia/metrics/labels.h"

namespace persia::metrics {
inline namespace abi_1 {

// Removes the series of (`group`, `name`) with exactly these labels, in any order. A time cost is two metrics, a histogram and
// a gauge. False: there is no such series, or memory ran out, which is logged; then nothing has changed.
PERSIA_METRICS_API bool RemoveSeries(std::string_view group, std::string_view name, LabelView labels = {}) noexcept;
// The same, for labels in braces.
inline bool RemoveSeries(std::string_view group, std::string_view name, std::initializer_list<Label> labels) noexcept {
  return RemoveSeries(group, name, LabelView(labels.begin(), labels.size()));
}

// Removes all series of (`group`, `name`).
PERSIA_METRICS_API void ClearSeries(std::string_view group, std::string_view name) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics
