// Brings what a prometheus-cpp registry, or any other prometheus::Collectable, holds into a snapshot.
//
// Thread safety: as Source; the Collectable may be written to by other threads meanwhile.
//
//   prometheus::Registry registry;
//   RegistrySource source(registry, identity);
//   auto snapshot = source.Collect();
#pragma once

#include <memory>
#include <vector>

#include "source/diagnostics.h"
#include "source/source.h"

namespace prometheus {
class Collectable;
}

namespace persia::agent {

class RegistrySource : public Source {
 public:
  // REQUIRES: `registry` outlives the source.
  RegistrySource(const prometheus::Collectable& registry, Identity identity);
  ~RegistrySource() override;

  // The same layout object while the registry holds the same series. Names, labels and text are made valid; what does not fit
  // the rest of its family (another type, other bounds than the family's first, the same series twice) is left out and
  // reported. An error if the Collectable throws.
  Result<std::shared_ptr<const Snapshot>> Collect() override;

  // What there is to log since the last call; each sentence comes once.
  [[nodiscard]] std::vector<Diagnostic> TakeDiagnostics() { return diagnostics_.Take(); }

 private:
  class Shape;

  const prometheus::Collectable& registry_;
  const Identity identity_;
  Diagnostics diagnostics_;
  std::unique_ptr<Shape> shape_;  // of the last collection
};

}  // namespace persia::agent
