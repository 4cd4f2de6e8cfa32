#include "persia/metrics/testing.h"

#include <cstdlib>

#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace testing {
namespace {

void Enter(TestScope* scope) noexcept {
  if (scope == nullptr || !Registry::EnterScope(*scope)) {
    std::abort();  // a test must not go on with the counts of others
  }
}

}  // namespace

Scope::Scope() noexcept : scope_(Registry::Get().BeginScope()) { testing::Enter(scope_); }

Scope::~Scope() {
  Registry::LeaveScope();
  Registry::Get().EndScope(scope_);
}

Scope::Entered::Entered(TestScope& scope) noexcept { testing::Enter(&scope); }

Scope::Entered::~Entered() { Registry::LeaveScope(); }

}  // namespace testing
}  // namespace abi_1
}  // namespace persia::metrics
