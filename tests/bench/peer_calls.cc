// What stands beside the hot calls: the floor, and prometheus-cpp, used as its own README shows.
#include <benchmark/benchmark.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "measured_values.h"

namespace {

using bench::kValues;
using bench::ValueOf;

void Elsewhere() { benchmark::ClobberMemory(); }

void VolatileIncrement(benchmark::State& state) {
  static volatile uint64_t count = 0;
  for (auto _ : state) {
    count = count + 1;
    Elsewhere();
  }
}

void FetchAdd(benchmark::State& state) {
  static std::atomic<uint64_t> count = 0;
  for (auto _ : state) {
    count.fetch_add(1, std::memory_order_relaxed);
    Elsewhere();
  }
}

prometheus::Registry& Registry() {
  static prometheus::Registry registry;
  return registry;
}

void CounterIncrement(benchmark::State& state) {
  static prometheus::Counter& counter =
      prometheus::BuildCounter().Name("my_app_batches").Help("Batches trained.").Register(Registry()).Add({});
  for (auto _ : state) {
    counter.Increment();
    Elsewhere();
  }
}

void CounterIncrementBy(benchmark::State& state) {
  static prometheus::Counter& counter =
      prometheus::BuildCounter().Name("my_app_rows").Help("Rows read.").Register(Registry()).Add({});
  uint64_t i = 0;
  for (auto _ : state) {
    counter.Increment(static_cast<double>(bench::kWholes[i++ % kValues]));
    Elsewhere();
  }
}

void GaugeSet(benchmark::State& state) {
  static prometheus::Gauge& gauge =
      prometheus::BuildGauge().Name("my_app_loss").Help("Of the last batch.").Register(Registry()).Add({});
  uint64_t i = 0;
  for (auto _ : state) {
    gauge.Set(ValueOf(i++));
    Elsewhere();
  }
}

void HistogramObserve(benchmark::State& state) {
  static auto& family = prometheus::BuildHistogram().Name("my_app_step_seconds").Help("A step.").Register(Registry());
  static prometheus::Histogram& small = family.Add({{"bounds", "11"}}, bench::Bounds(11));
  static prometheus::Histogram& large = family.Add({{"bounds", "20"}}, bench::Bounds(20));
  prometheus::Histogram& histogram = state.range(0) == 11 ? small : large;
  uint64_t i = 0;
  for (auto _ : state) {
    histogram.Observe(ValueOf(i++));
    Elsewhere();
  }
}

void ChildLookup(benchmark::State& state) {
  static auto& family =
      prometheus::BuildCounter().Name("my_app_nan_count").Help("NaN gradients, by feature.").Register(Registry());
  uint64_t i = 0;
  for (auto _ : state) {
    family.Add({{"feat", std::string(bench::kFeatures[i++ % bench::kFeatures.size()])}}).Increment();
    Elsewhere();
  }
}

BENCHMARK(VolatileIncrement)->Name("counter/volatile ++")->Threads(1);
BENCHMARK(FetchAdd)->Name("counter/fetch_add")->Threads(1)->Threads(2);
BENCHMARK(CounterIncrement)->Name("counter/prometheus-cpp")->Threads(1)->Threads(2);
BENCHMARK(CounterIncrementBy)->Name("counter by whole/prometheus-cpp")->Threads(1)->Threads(2);
BENCHMARK(GaugeSet)->Name("gauge/prometheus-cpp")->Threads(1)->Threads(2);
BENCHMARK(HistogramObserve)->Name("histogram/prometheus-cpp")->Arg(11)->Arg(20)->Threads(1)->Threads(2);
BENCHMARK(ChildLookup)->Name("child/prometheus-cpp")->Threads(1);

}  // namespace
