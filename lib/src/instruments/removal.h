// Which series there are, and their removal, with their functions. Thread safety: any function, from any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "persia/metrics/labels.h"

namespace persia::metrics {
inline namespace abi_1 {

namespace internal {
struct FamilyNode;
}  // namespace internal

// Whether the metric has a series with exactly these labels, in any order. False: it was never made, was refused or removed, or
// metrics are disabled.
[[nodiscard]] bool HasSeries(std::string_view group, std::string_view name, LabelView labels) noexcept;

// False: there is no such series, or memory ran out.
bool RemoveSlot(uint32_t slot) noexcept;
void ClearFamily(const internal::FamilyNode* family) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics
