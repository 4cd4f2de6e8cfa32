#include "persia/metrics/testing.h"

#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace testing {

Scope::Scope() noexcept : scope_(Registry::Get().BeginScope()) {}

Scope::~Scope() { Registry::Get().EndScope(scope_); }

}  // namespace testing
}  // namespace abi_1
}  // namespace persia::metrics
