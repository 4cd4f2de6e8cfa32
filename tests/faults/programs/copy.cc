// Copies a registry of prometheus-cpp, which the program fills. Prints its counts.
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>

#include "own.h"
#include "persia/metrics/prometheus_cpp.h"
#include "scope.h"

namespace {

using faults::Library;
using faults::Print;

}  // namespace

int main() {
  Print("pid parent %d", getpid());
  faults::Ledger ledger;
  auto registry = std::make_shared<prometheus::Registry>();
  auto& steps = prometheus::BuildCounter().Name("copied_steps_total").Help("Steps.").Register(*registry).Add({});
  auto& user = prometheus::BuildGauge().Name("copied_rate").Help("A rate.").Register(*registry).Add({{"feat", "user"}});
  auto& sizes = prometheus::BuildHistogram()
                    .Name("copied_sizes")
                    .Help("Sizes.")
                    .Register(*registry)
                    .Add({}, prometheus::Histogram::BucketBoundaries{1, 2, 4});
  steps.Increment(3);
  user.Set(0.5);
  sizes.Observe(1.5);
  std::optional<persia::metrics::RegistryCopy> copy;
  Library([&] { copy.emplace(registry, std::chrono::hours(1)); });
  steps.Increment(4);
  sizes.Observe(3);
  Library([&] { copy->CopyNow(); });
  steps.Increment(5);
  Library([&] { copy.reset(); });
  ledger.Add("/copied_steps_total", 12);
  ledger.Set("/copied_rate{feat=user}", 0.5);
  ledger.Add("/copied_sizes:count", 2);
  ledger.Add("/copied_sizes:sum", 4.5);
  ledger.Print("parent");
}
