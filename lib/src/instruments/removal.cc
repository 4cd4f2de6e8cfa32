#include "removal.h"

#include <string_view>

#include "callbacks.h"
#include "persia/metrics/remove.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {

bool RemoveSlot(uint32_t slot) noexcept {
  if (slot == internal::kScratchSlot) return false;
  EndCallback(slot);
  return Registry::Get().Remove(slot);
}

void ClearFamily(const internal::FamilyNode* family) noexcept {
  if (family == nullptr) return;
  Registry& registry = Registry::Get();
  for (uint32_t slot = registry.NextSlotOf(family, 0); slot != internal::kScratchSlot; slot = registry.NextSlotOf(family, slot))
    RemoveSlot(slot);
}

bool HasSeries(std::string_view group, std::string_view name, LabelView labels) noexcept {
  const Registry& registry = Registry::Get();
  return registry.FindSlot(registry.FindMetric(group, name), labels) != internal::kScratchSlot;
}

bool RemoveSeries(std::string_view group, std::string_view name, LabelView labels) noexcept {
  Registry& registry = Registry::Get();
  return RemoveSlot(registry.FindSlot(registry.FindMetric(group, name), labels));
}

void ClearSeries(std::string_view group, std::string_view name) noexcept {
  ClearFamily(Registry::Get().FindMetric(group, name));
}

}  // namespace abi_1
}  // namespace persia::metrics
