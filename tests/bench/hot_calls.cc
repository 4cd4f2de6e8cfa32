// The hot calls, as a training loop makes them. Built twice: with the static library, beside peer_calls.cc, and with the shared
// one. Values vary, since a compiler and a processor treat a constant kindly. Each name is `what/who`.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "measured_values.h"
#include "persia/metrics/metrics.h"

namespace {

using namespace persia::metrics;
using bench::kValues;
using bench::ValueOf;

// So that nothing of a call is moved out of the loop: a user's step does other work in between.
void Elsewhere() { benchmark::ClobberMemory(); }

void CounterIncrement(benchmark::State& state) {
  static Counter counter("my_app", "batches", {.help = "Batches trained."});
  for (auto _ : state) {
    counter.Increment();
    Elsewhere();
  }
}

void CounterIncrementBy(benchmark::State& state) {
  static Counter counter("my_app", "rows", {.help = "Rows read."});
  uint64_t i = 0;
  for (auto _ : state) {
    counter.Increment(bench::kWholes[i++ % kValues]);
    Elsewhere();
  }
}

void CounterIncrementByDouble(benchmark::State& state) {
  static Counter counter("my_app", "bytes", {.help = "Bytes sent."});
  uint64_t i = 0;
  for (auto _ : state) {
    counter.Increment(static_cast<double>(bench::kWholes[i++ % kValues]));
    Elsewhere();
  }
}

void GaugeSet(benchmark::State& state) {
  static Gauge gauge("my_app", "loss", {.help = "Of the last batch."});
  uint64_t i = 0;
  for (auto _ : state) {
    gauge.Set(ValueOf(i++));
    Elsewhere();
  }
}

void HistogramObserve(benchmark::State& state) {
  static Histogram small("my_app", "step_seconds", bench::Bounds(11), {.help = "A step."});
  static Histogram large("my_app", "lookup_seconds", bench::Bounds(20), {.help = "A look-up."});
  Histogram& histogram = state.range(0) == 11 ? small : large;
  uint64_t i = 0;
  for (auto _ : state) {
    histogram.Observe(ValueOf(i++));
    Elsewhere();
  }
}

void StreamAdd(benchmark::State& state) {
  static Stream stream("my_app", "calculate_latency");
  uint64_t i = 0;
  for (auto _ : state) {
    stream.Add(ValueOf(i++));
    Elsewhere();
  }
}

void StreamPutMetric(benchmark::State& state) {
  uint64_t i = 0;
  for (auto _ : state) {
    PutMetric("calculate_latency", ValueOf(i++), "my_app");
    Elsewhere();
  }
}

void StreamAddValue(benchmark::State& state) {
  MetricStream stream = GetStream("my_app");
  uint64_t i = 0;
  for (auto _ : state) {
    stream.AddValue("calculate_latency", ValueOf(i++));
    Elsewhere();
  }
}

void ChildLookup(benchmark::State& state) {
  static Family<Counter> family("my_app", "nan_count", {.help = "NaN gradients, by feature."});
  uint64_t i = 0;
  for (auto _ : state) {
    family.With({{"feat", bench::kFeatures[i++ % bench::kFeatures.size()]}}).Increment();
    Elsewhere();
  }
}

void EventRecord(benchmark::State& state) {
  int64_t i = 0;
  for (auto _ : state) {
    events::Record("checkpoint", "my_app",
                   {{"step", ++i}, {"seconds", ValueOf(static_cast<uint64_t>(i))}, {"path", "/ckpt/last"}});
    Elsewhere();
  }
}

BENCHMARK(CounterIncrement)->Name("counter/ours")->Threads(1)->Threads(2);
BENCHMARK(CounterIncrementBy)->Name("counter by whole/ours")->Threads(1)->Threads(2);
BENCHMARK(CounterIncrementByDouble)->Name("counter by double/ours")->Threads(1)->Threads(2);
BENCHMARK(GaugeSet)->Name("gauge/ours")->Threads(1)->Threads(2);
BENCHMARK(HistogramObserve)->Name("histogram/ours")->Arg(11)->Arg(20)->Threads(1)->Threads(2);
BENCHMARK(StreamAdd)->Name("stream/ours")->Threads(1);
BENCHMARK(StreamPutMetric)->Name("stream by names/ours")->Threads(1);
BENCHMARK(StreamAddValue)->Name("stream by name/ours")->Threads(1);
BENCHMARK(ChildLookup)->Name("child/ours")->Threads(1);
BENCHMARK(EventRecord)->Name("event/ours")->Threads(1);

}  // namespace
