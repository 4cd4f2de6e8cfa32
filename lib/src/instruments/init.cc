#include "persia/metrics/init.h"

#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {

InitResult Init(const Options& options) noexcept { return Registry::Get().Init(options); }

bool Exporting() noexcept { return Registry::Get().Exporting(); }

}  // namespace abi_1
}  // namespace persia::metrics
