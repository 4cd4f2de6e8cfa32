#include "persia/metrics/info.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "fork_locks.h"
#include "registry.h"
#include "removal.h"

namespace persia::metrics {
inline namespace abi_1 {

struct Info::State {
  Family<Gauge> family;
  Gauge current;  // guarded by the lock
};

Info::Info(std::string_view group, std::string_view name, const Description& about) noexcept {
  constexpr std::string_view kSuffix = "_info";
  try {
    std::string full(name);
    if (!name.ends_with(kSuffix)) full += kSuffix;
    state_ = std::make_shared<State>(State{Family<Gauge>(group, full, about), Gauge()});
  } catch (const std::bad_alloc&) {
    Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  }
}

void Info::Set(LabelView texts) noexcept {
  if (state_ == nullptr) return;
  Gauge next = state_->family.With(texts);
  if (next.slot_ == internal::kScratchSlot) return;
  MutexLock lock(MutexOf(ForkLock::kInfo));
  if (state_->current.slot_ != next.slot_) state_->current.Unset();
  next.Set(1);
  state_->current = next;
}

void Info::Unset() noexcept {
  if (state_ == nullptr) return;
  MutexLock lock(MutexOf(ForkLock::kInfo));
  state_->current.Unset();
}

bool Info::Remove() noexcept {
  if (state_ == nullptr) return false;
  uint32_t slot = internal::kScratchSlot;
  {
    MutexLock lock(MutexOf(ForkLock::kInfo));
    slot = state_->current.slot_;
  }
  return RemoveSlot(slot);
}

Enum::Enum(std::string_view group, std::string_view name, Span<const std::string_view> states,
           const Description& about) noexcept {
  try {
    const std::string label = group.empty() ? std::string(name) : std::string(group) + "_" + std::string(name);
    Family<Gauge> family(group, name, about);
    States gauges;
    for (const std::string_view state : states) {
      gauges.emplace_back(state, family.With({{label, state}}));
      // Another handle of this enum may have set the state already.
      if (!gauges.back().second.Value().has_value()) gauges.back().second.Set(gauges.size() == 1 ? 1 : 0);
    }
    states_ = std::make_shared<const States>(std::move(gauges));
  } catch (const std::bad_alloc&) {
    Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  }
}

void Enum::Set(std::string_view state) noexcept {
  if (states_ == nullptr) return;
  const auto known = [&](const auto& entry) { return entry.first == state; };
  if (std::ranges::none_of(*states_, known)) {
    const uint32_t slot = states_->empty() ? internal::kScratchSlot : states_->front().second.slot_;
    return Registry::Get().CountLost(segment::Drop::kBadValue, slot);
  }
  MutexLock lock(MutexOf(ForkLock::kInfo));  // so that two changes at once leave one state
  for (const auto& [name, gauge] : *states_) {
    Gauge to = gauge;
    to.Set(name == state ? 1 : 0);
  }
}

void Enum::Unset() noexcept {
  if (states_ == nullptr) return;
  MutexLock lock(MutexOf(ForkLock::kInfo));
  for (const auto& [name, gauge] : *states_) {
    Gauge to = gauge;
    to.Unset();
  }
}

bool Enum::Remove() noexcept {
  if (states_ == nullptr) return false;
  bool removed = false;
  for (const auto& [name, gauge] : *states_) removed = RemoveSlot(gauge.slot_) || removed;
  return removed;
}

std::string Enum::Value() const noexcept try {
  if (states_ == nullptr) return {};
  for (const auto& [name, gauge] : *states_)
    if (gauge.Value() == 1) return name;
  return {};
} catch (const std::bad_alloc&) {
  Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  return {};
}

}  // namespace abi_1
}  // namespace persia::metrics
