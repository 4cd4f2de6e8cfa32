#include "persia/metrics/init.h"

#include <cstdint>

#include "persia/metrics/internal/process.h"
#include "persia/metrics/testing.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {

InitResult Init(const Options& options) noexcept { return Registry::Get().Init(options); }

bool Exporting() noexcept { return Registry::Get().Exporting(); }

void internal::SetProcessGroupRank(int32_t rank) noexcept { Registry::Get().SetProcessGroupRank(rank); }

testing::Scope::Scope() noexcept : scope_(Registry::Get().BeginScope()) {}

testing::Scope::~Scope() { Registry::Get().EndScope(scope_); }

}  // namespace abi_1
}  // namespace persia::metrics
