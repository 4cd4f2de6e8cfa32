// Metrics of the agent that are in a prometheus-cpp registry.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "model/snapshot.h"

namespace prometheus {
class Collectable;
}

namespace persia::agent {

// Registers families with a prometheus-cpp registry.
//
// Thread safety: as prometheus-cpp's, but RaiseTo has one caller at a time.
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

// Converts the contents of a prometheus-cpp registry to a snapshot.
//
// Names and labels are copied unchanged and must be valid. All series of a histogram must have the same bounds.
// A histogram whose bounds are consecutive ones of a schema of native histograms, 32 or more, is native.
// Thread safety: one thread at a time; other threads may write to the registry concurrently.
//
//   prometheus::Registry registry;
//   RegistrySource source(registry, identity);
//   std::shared_ptr<const Snapshot> snapshot = source.Collect();
class RegistrySource {
 public:
  // REQUIRES: `registry` outlives the source.
  RegistrySource(const prometheus::Collectable& registry, Identity identity);
  ~RegistrySource();

  // Returns the same layout object while the registry has the same series.
  std::shared_ptr<const Snapshot> Collect();

 private:
  class Shape;

  const prometheus::Collectable& registry_;
  const Identity identity_;
  std::unique_ptr<Shape> shape_;  // of the last collection
};

}  // namespace persia::agent
