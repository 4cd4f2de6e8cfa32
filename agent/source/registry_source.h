// Brings what a prometheus-cpp registry, or any other prometheus::Collectable, holds into a snapshot.
//
// Thread safety: as Source; the Collectable may be written to by other threads meanwhile.
//
//   prometheus::Registry registry;
//   RegistrySource source(registry, identity, [](const std::string& message) { log->warn(message); });
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "source/source.h"

namespace prometheus {
class Collectable;
}

namespace persia::agent {

class RegistrySource : public Source {
 public:
  // Called with one sentence per new layout for each family of which a part does not fit the rest: another type, or a histogram
  // with other bounds than the family's first. That part is left out.
  using Report = std::function<void(const std::string& message)>;

  // REQUIRES: `registry` outlives the source.
  RegistrySource(const prometheus::Collectable& registry, Identity identity, Report report = nullptr);
  ~RegistrySource() override;

  // The same layout object while the registry holds the same series.
  Result<std::shared_ptr<const Snapshot>> Collect() override;

 private:
  class Shape;

  const prometheus::Collectable& registry_;
  const Identity identity_;
  const Report report_;
  std::unique_ptr<Shape> shape_;  // of the last collection
};

}  // namespace persia::agent
