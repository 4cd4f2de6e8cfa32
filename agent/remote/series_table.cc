#include "remote/series_table.h"

#include <functional>

namespace persia::agent {
// The slot of these labels, or the free slot for them.
size_t SeriesTable::SlotOf(std::string_view labels, uint64_t hash) const {
  size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot] != kFree && (hashes_[slots_[slot]] != hash || this->labels(slots_[slot]) != labels)) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

bool SeriesTable::Add(std::string_view labels) {
  const uint64_t hash = std::hash<std::string_view>()(labels);
  const size_t slot = SlotOf(labels, hash);
  if (slots_[slot] != kFree) return false;
  slots_[slot] = static_cast<uint32_t>(size());
  text_ += labels;
  ends_.push_back(text_.size());
  hashes_.push_back(hash);
  if (2 * (size() + 1) > slots_.size()) {
    slots_.assign(2 * slots_.size(), kFree);
    for (size_t i = 0; i < size(); ++i) slots_[SlotOf(this->labels(i), hashes_[i])] = static_cast<uint32_t>(i);
  }
  return true;
}

std::optional<uint32_t> SeriesTable::Find(std::string_view labels) const {
  const uint32_t series = slots_[SlotOf(labels, std::hash<std::string_view>()(labels))];
  return series == kFree ? std::nullopt : std::optional(series);
}

}  // namespace persia::agent
