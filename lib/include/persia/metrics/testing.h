// For unit tests of instrumentation: a scope in which a test sees only its own counts.
//
//   persia::metrics::testing::Scope scope;
//   Train();
//   EXPECT_EQ(batches.Value(), 1);
//
// The metrics are the program's own; nothing is replaced or registered. In a scope, everything starts at 0, and gauges,
// streams, infos and enums as if they were never set. `Value()`, ReadValue, ReadSnapshot and events::Count see what the threads
// of the scope have counted since its beginning. At its end these counts are discarded: nothing outside of the scope ever sees
// them, the agent neither. Tests in several threads, each in its own scope, run at the same time. Threads in no scope count as
// ever.
//
// - A thread that the code under test starts is in no scope until it calls Enter.
// - The functions of gauges and counters (SetFunction) run in a thread of the library, outside of all scopes.
// - Metrics that are made in a scope stay, without the scope's values. Events leave no records, only counts.
// - A series that is removed in a scope is removed for all; what the scope has counted in it stays.
// - While a scope exists, gauges and streams take a lock in all threads of the process.
// - In a forked child the thread is in no scope.
#pragma once

#include "persia/metrics/export.h"

namespace persia::metrics {
inline namespace abi_1 {

struct TestScope;

namespace testing {

// The calling thread is in the scope during the object's life. Scopes nest: an inner one starts at 0, too, and its counts are
// not the outer one's. Aborts if memory runs out. Thread safety: made and destroyed by one thread; other threads may call
// Enter.
class PERSIA_METRICS_API Scope {
 public:
  [[nodiscard]] Scope() noexcept;
  // REQUIRES: all other threads have left.
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // The thread that made it is in the scope during its life.
  class PERSIA_METRICS_API Entered {
   public:
    // REQUIRES: this is the thread that entered.
    ~Entered();
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    friend class Scope;
    explicit Entered(TestScope& scope) noexcept;
  };
  // Lets another thread into the scope: `const auto entered = scope.Enter();`
  [[nodiscard]] Entered Enter() noexcept { return Entered(*scope_); }

 private:
  TestScope* scope_;
};

}  // namespace testing
}  // namespace abi_1
}  // namespace persia::metrics
