// The handles of the C API, one template for all kinds.
// Thread safety: any function, from any thread.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fork_locks.h"
#include "persia/metrics/c.h"
#include "persia/metrics/info.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/internal/process.h"
#include "persia/metrics/labels.h"
#include "persia/metrics/phase.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace c_api {

inline std::string_view View(const char* text) { return text == nullptr ? std::string_view() : text; }
inline std::string Text(const char* text) { return std::string(View(text)); }

inline Description About(const persia_metrics_description_t* about) {
  if (about == nullptr) return {};
  Description described{.help = Text(about->help), .unit = Text(about->unit)};
  for (size_t i = 0; i < about->label_count; ++i)
    described.labels.emplace_back(Text(about->labels[i].name), Text(about->labels[i].value));
  return described;
}

// An enum, and the order of its states.
struct States {
  States(std::string_view group, std::string_view name, const std::vector<std::string_view>& states, const Description& about)
      : current(group, name, states, about), names(states.begin(), states.end()) {}

  Enum current;
  std::vector<std::string> names;
};

// What a handle of C points to. A new one counts nothing.
template <class T, class Stored = T>
struct Handle {
  using Instrument = T;
  Stored of = {};
};
// Of an instrument that there is not if memory ran out.
template <class T>
using OptionalHandle = Handle<T, std::optional<T>>;

// Calls `use`. If memory runs out, counts that, and returns 0.
template <class Use>
auto Guarded(const Use& use) {
  try {
    return use();
  } catch (const std::bad_alloc&) {
    internal::CountOutOfMemory();
    return decltype(use())();
  }
}

// The bytes of a definition. They are part of a handle's key, so that a request with another definition gets another handle.
inline std::string BytesOf(GaugeMerge merge) { return {static_cast<char>(merge)}; }
inline std::string BytesOf(std::span<const double> bounds) {
  return {reinterpret_cast<const char*>(bounds.data()), bounds.size_bytes()};
}
inline std::string BytesOf(const NativeBuckets& buckets) {
  // Bounds ascend: no histogram with bounds has this definition.
  const double numbers[] = {buckets.factor, static_cast<double>(buckets.max_buckets), buckets.zero_threshold, buckets.most, -1};
  return BytesOf(std::span<const double>(numbers));
}
inline std::string BytesOf(const std::vector<std::string_view>& states) {
  std::string bytes;
  for (const std::string_view state : states) bytes.append(state).append(1, '\0');
  return bytes;
}

template <class Instrument, class... Definition>
Instrument Make(std::string_view group, std::string_view name, const Description& about, const Definition&... definition) {
  if constexpr (std::is_same_v<Instrument, Phase>)
    return Instrument(name);
  else
    return Instrument(group, name, definition..., about);
}

// The handles of one kind that were requested, by group, name, definition and labels. Never destroyed: they are used after
// main.
template <class Of>
using Handles = std::map<std::vector<std::string>, std::unique_ptr<Of>>;

template <class Of>
constinit Handles<Of>* handles = nullptr;  // guarded by the lock

template <class Of>
Of* CountsNothing() noexcept {
  static constinit Of handle{};
  return &handle;
}

// Finds the handle, or makes it. If memory runs out, returns one that counts nothing.
template <class Of, class... Definition>
Of* FindOrMake(const char* group, const char* name, const persia_metrics_description_t* description,
               const Definition&... definition) noexcept {
  Of* const found = Guarded([&] {
    const Description about = About(description);
    LabelSet sorted = about.labels;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::string> key = {Text(group), Text(name), BytesOf(definition)...};
    for (auto& [label, value] : sorted) {
      key.push_back(std::move(label));
      key.push_back(std::move(value));
    }
    MutexLock lock(MutexOf(ForkLock::kHandlesInC));
    if (handles<Of> == nullptr) handles<Of> = new Handles<Of>;
    std::unique_ptr<Of>& handle = (*handles<Of>)[std::move(key)];
    // Also for a handle that exists: its series may have been removed, and is then exposed again.
    Of made{{Make<typename Of::Instrument>(View(group), View(name), about, definition...)}};
    if (handle == nullptr) handle = std::make_unique<Of>(std::move(made));
    return handle.get();
  });
  return found == nullptr ? CountsNothing<Of>() : found;
}

// The handle's instrument. NULL: one that counts nothing.
template <class Of>
auto& InstrumentOf(Of* handle) noexcept {
  return (handle == nullptr ? CountsNothing<std::remove_const_t<Of>>() : handle)->of;
}

}  // namespace c_api
}  // namespace abi_1
}  // namespace persia::metrics
