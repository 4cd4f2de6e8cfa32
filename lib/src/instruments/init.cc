#include "persia/metrics/init.h"

#include "registry.h"

namespace persia::metrics {

InitResult Init(const Options& options) noexcept { return Registry::Get().Init(options); }

bool Exporting() noexcept { return Registry::Get().Exporting(); }

}  // namespace persia::metrics
