// For unit tests of instrumentation: a scope in which a test sees only its own counts.
//
//   persia::metrics::testing::Scope scope;
//   Train();
//   EXPECT_EQ(batches.Value(), 1);
//
// The metrics are the program's own; nothing is replaced or registered. In a scope, everything starts at 0, and gauges,
// streams, infos and enums as if they were never set. `Value()`, ReadValue, ReadSnapshot and events::Count subtract what was
// counted before. At the scope's end they include all counts again, those of the scope too, and gauges, and the last values of
// streams, have their former values back.
//
// - A scope is the process's: all threads count in it. Tests in several processes do not see each other. Tests in several
//   threads of one process do, and a gauge may lose its value there when scopes overlap.
// - The agent and other processes see all counts, also those of a scope. Gauges have no value there at the begin of a scope.
// - A series that is removed in a scope is removed for good. If it is requested again in the same scope, it has the counts from
//   before the scope back at its end.
// - In a forked child the scope has no effect.
#pragma once

#include "persia/metrics/export.h"

namespace persia::metrics {
inline namespace abi_1 {

struct TestScope;

namespace testing {

// The scope lasts as long as the object. Scopes nest: an inner one starts at 0, too. Aborts if memory runs out. Thread safety:
// any thread.
class PERSIA_METRICS_API Scope {
 public:
  [[nodiscard]] Scope() noexcept;
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  TestScope* scope_;
};

}  // namespace testing
}  // namespace abi_1
}  // namespace persia::metrics
