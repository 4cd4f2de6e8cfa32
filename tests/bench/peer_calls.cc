// The peers of the hot calls: the floor, and prometheus-cpp, used as its own README shows.
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "measured_calls.h"

namespace {

using bench::Each;
using bench::kFeatures;
using bench::kSeconds;
using bench::kWholeDoubles;
using bench::kWholes;
using benchmark::State;

void VolatileIncrement(State& state) {
  static volatile uint64_t count = 0;
  Each(state, kWholes, [](uint64_t) { count = count + 1; });
}

void FetchAdd(State& state) {
  static std::atomic<uint64_t> count = 0;
  Each(state, kWholes, [](uint64_t) { count.fetch_add(1, std::memory_order_relaxed); });
}

// The floor of an observation: a sum of doubles in memory.
void VolatileSum(State& state) {
  static volatile double sum = 0;
  Each(state, kSeconds, [](double value) { sum = sum + value; });
}

void VolatileStore(State& state) {
  [[maybe_unused]] static volatile double last = 0;
  Each(state, kSeconds, [](double value) { last = value; });
}

prometheus::Registry& Registry() {
  static prometheus::Registry registry;
  return registry;
}

void CounterIncrement(State& state) {
  static prometheus::Counter& counter =
      prometheus::BuildCounter().Name("my_app_batches").Help("Batches trained.").Register(Registry()).Add({});
  Each(state, kWholes, [](uint64_t) { counter.Increment(); });
}

void CounterIncrementBy(State& state) {
  static prometheus::Counter& counter =
      prometheus::BuildCounter().Name("my_app_rows").Help("Rows read.").Register(Registry()).Add({});
  Each(state, kWholeDoubles, [](double by) { counter.Increment(by); });
}

void GaugeSet(State& state) {
  static prometheus::Gauge& gauge =
      prometheus::BuildGauge().Name("my_app_loss").Help("Of the last batch.").Register(Registry()).Add({});
  Each(state, kSeconds, [](double value) { gauge.Set(value); });
}

void HistogramObserve(State& state) {
  static auto& family = prometheus::BuildHistogram().Name("my_app_step_seconds").Help("A step.").Register(Registry());
  static prometheus::Histogram& small = family.Add({{"bounds", "11"}}, bench::Bounds(11));
  static prometheus::Histogram& large = family.Add({{"bounds", "20"}}, bench::Bounds(20));
  prometheus::Histogram& histogram = state.range(0) == 11 ? small : large;
  Each(state, kSeconds, [&](double value) { histogram.Observe(value); });
}

void ChildLookup(State& state) {
  static auto& family =
      prometheus::BuildCounter().Name("my_app_nan_count").Help("NaN gradients, by feature.").Register(Registry());
  Each(state, kFeatures, [](std::string_view feature) { family.Add({{"feat", std::string(feature)}}).Increment(); });
}

BENCHMARK(VolatileIncrement)->Name("counter/volatile ++")->Threads(1);
BENCHMARK(VolatileSum)->Name("histogram/volatile +=")->Threads(1);
BENCHMARK(VolatileStore)->Name("gauge/volatile =")->Threads(1);
BENCHMARK(FetchAdd)->Name("counter/fetch_add")->Threads(1)->Threads(2);
BENCHMARK(CounterIncrement)->Name("counter/prometheus-cpp")->Threads(1)->Threads(2);
BENCHMARK(CounterIncrementBy)->Name("counter by whole/prometheus-cpp")->Threads(1)->Threads(2);
BENCHMARK(GaugeSet)->Name("gauge/prometheus-cpp")->Threads(1)->Threads(2);
BENCHMARK(HistogramObserve)->Name("histogram/prometheus-cpp")->Arg(11)->Arg(20)->Threads(1)->Threads(2);
BENCHMARK(ChildLookup)->Name("child/prometheus-cpp")->Threads(1);

}  // namespace
