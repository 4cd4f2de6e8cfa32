// Removes series, with their functions. Thread safety: any function, from any thread.
#pragma once

#include <cstdint>

#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {

// False: there is no such series, or memory ran out.
bool RemoveSlot(uint32_t slot) noexcept;
void ClearFamily(const internal::FamilyNode* family) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics
