// Which series there are. Thread safety: any function, from any thread.
#pragma once

#include <string_view>

#include "persia/metrics/labels.h"

namespace persia::metrics {
inline namespace abi_1 {

// Whether the metric has a series with exactly these labels, in any order. False: it was never made, was refused or removed, or
// metrics are disabled.
[[nodiscard]] bool HasSeries(std::string_view group, std::string_view name, LabelView labels) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics
