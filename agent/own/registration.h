// Registers families with a prometheus-cpp registry.
//
// Thread safety: as prometheus-cpp's, but RaiseTo has one caller at a time.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <cstdint>

namespace persia::agent {

template <class Builder>
auto& RegisterFamily(prometheus::Registry& registry, Builder builder, const char* name, const char* help) {
  return builder.Name(name).Help(help).Register(registry);
}
template <class Builder>
auto& RegisterMetric(prometheus::Registry& registry, Builder builder, const char* name, const char* help) {
  return RegisterFamily(registry, builder, name, help).Add({});
}

// Raises a counter to a total that is counted elsewhere.
inline void RaiseTo(prometheus::Counter& counter, uint64_t total) {
  counter.Increment(std::max(0.0, static_cast<double>(total) - counter.Value()));
}

}  // namespace persia::agent
