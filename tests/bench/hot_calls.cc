// The hot calls, as a training loop makes them. Built twice: with the static library and with the shared one. Names are
// `call/library`.
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "measured_calls.h"
#include "persia/metrics/metrics.h"

namespace {

using namespace persia::metrics;
using bench::Between;
using bench::Each;
using bench::kFeatures;
using bench::kSeconds;
using bench::kWholeDoubles;
using bench::kWholes;
using benchmark::State;

void CounterIncrement(State& state) {
  static Counter counter("my_app", "batches", {.help = "Batches trained."});
  Each(state, kWholes, [](uint64_t) { counter.Increment(); });
}

void CounterIncrementAmidWork(State& state) {
  static Counter counter("my_app", "steps", {.help = "Steps trained."});
  Each<Between::kOtherWork>(state, kWholes, [](uint64_t) { counter.Increment(); });
}

void GaugeSetAmidWork(State& state) {
  static Gauge gauge("my_app", "accuracy", {.help = "Of the last batch."});
  Each<Between::kOtherWork>(state, kSeconds, [](double value) { gauge.Set(value); });
}

void HistogramObserveAmidWork(State& state) {
  static Histogram histogram("my_app", "batch_seconds", bench::Bounds(11), {.help = "A batch."});
  Each<Between::kOtherWork>(state, kSeconds, [](double value) { histogram.Observe(value); });
}

// Threads that have nothing to do with each other. One thread runs the same code for comparison.
void CounterIncrementApart(State& state) {
  static std::array<Counter, 2> counters = {Counter("my_app", "evens", {.help = "Even batches trained."}),
                                            Counter("my_app", "odds", {.help = "Odd batches trained."})};
  Counter& counter = counters[static_cast<size_t>(state.thread_index())];
  Each(state, kWholes, [&](uint64_t) { counter.Increment(); });
}

// Each thread dirties its lane before it reads those of all threads.
void CounterValue(State& state) {
  static Counter counter("my_app", "read", {.help = "Batches trained."});
  Each(state, kWholes, [](uint64_t) {
    counter.Increment();
    benchmark::DoNotOptimize(counter.Value());
  });
}

void CounterIncrementBy(State& state) {
  static Counter counter("my_app", "rows", {.help = "Rows read."});
  Each(state, kWholes, [](uint64_t by) { counter.Increment(by); });
}

void CounterIncrementByApart(State& state) {
  static std::array<Counter, 2> counters = {Counter("my_app", "even_rows", {.help = "Rows of even batches."}),
                                            Counter("my_app", "odd_rows", {.help = "Rows of odd batches."})};
  Counter& counter = counters[static_cast<size_t>(state.thread_index())];
  Each(state, kWholes, [&](uint64_t by) { counter.Increment(by); });
}

void CounterIncrementByDouble(State& state) {
  static Counter counter("my_app", "bytes", {.help = "Bytes sent."});
  Each(state, kWholeDoubles, [](double by) { counter.Increment(by); });
}

void GaugeSet(State& state) {
  static Gauge gauge("my_app", "loss", {.help = "Of the last batch."});
  Each(state, kSeconds, [](double value) { gauge.Set(value); });
}

void HistogramObserve(State& state) {
  static Histogram small("my_app", "step_seconds", bench::Bounds(11), {.help = "A step."});
  static Histogram large("my_app", "lookup_seconds", bench::Bounds(20), {.help = "A look-up."});
  Histogram& histogram = state.range(0) == 11 ? small : large;
  Each(state, kSeconds, [&](double value) { histogram.Observe(value); });
}

void NativeHistogramObserve(State& state) {
  static Histogram histogram("my_app", "reply_seconds", NativeBuckets(), {.help = "A reply."});
  Each(state, kSeconds, [](double value) { histogram.Observe(value); });
}

void StreamAdd(State& state) {
  static Stream stream("my_app", "calculate_latency");
  Each(state, kSeconds, [](double value) { stream.Add(value); });
}

void StreamPutMetric(State& state) {
  double value = 0;
  Each(state, kFeatures, [&](std::string_view name) { PutMetric(name, value += 0.25, "my_app"); });
}

void StreamAddValue(State& state) {
  MetricStream stream = GetStream("my_app");
  Each(state, kSeconds, [&](double value) { stream.AddValue("calculate_latency", value); });
}

void ChildLookup(State& state) {
  static Family<Counter> family("my_app", "nan_count", {.help = "NaN gradients, by feature."});
  Each(state, kFeatures, [](std::string_view feature) { family.With({{"feat", feature}}).Increment(); });
}

void EventRecord(State& state) {
  int64_t step = 0;
  Each(state, kSeconds, [&](double seconds) {
    events::Record("my_app", "checkpoint", {{"step", ++step}, {"seconds", seconds}, {"path", "/ckpt/last"}});
  });
}

// A phase inside another one, as in a step: two marks.
void PhaseMarks(State& state) {
  static const Phase forward("forward"), sync("sync");
  const InPhase in(forward);
  Each(state, kWholes, [](uint64_t) { const InPhase inner(sync); });
}

// The clock that they read.
void PhaseClock(State& state) {
  Each(state, kWholes, [](uint64_t) {
    for (int mark = 0; mark < 2; ++mark) {
      timespec now{};
      clock_gettime(CLOCK_MONOTONIC, &now);
      benchmark::DoNotOptimize(now);
    }
  });
}

BENCHMARK(CounterIncrement)->Name("counter/ours")->Threads(1)->Threads(2);
BENCHMARK(CounterIncrementApart)->Name("counter/apart")->Threads(1)->Threads(2);
BENCHMARK(CounterValue)->Name("counter value/ours")->Threads(8);
BENCHMARK(CounterIncrementAmidWork)->Name("counter amid work/ours")->Threads(1);
BENCHMARK(GaugeSetAmidWork)->Name("gauge amid work/ours")->Threads(1);
BENCHMARK(HistogramObserveAmidWork)->Name("histogram amid work/ours")->Threads(1);
BENCHMARK(CounterIncrementBy)->Name("counter by whole/ours")->Threads(1)->Threads(2);
BENCHMARK(CounterIncrementByApart)->Name("counter by whole/apart")->Threads(1)->Threads(2);
BENCHMARK(CounterIncrementByDouble)->Name("counter by double/ours")->Threads(1)->Threads(2);
BENCHMARK(GaugeSet)->Name("gauge/ours")->Threads(1)->Threads(2);
BENCHMARK(NativeHistogramObserve)->Name("native histogram/ours")->Threads(1);
BENCHMARK(HistogramObserve)->Name("histogram/ours")->Arg(11)->Arg(20)->Threads(1)->Threads(2);
BENCHMARK(StreamAdd)->Name("stream/ours")->Threads(1);
BENCHMARK(StreamPutMetric)->Name("stream by names/ours")->Threads(1);
BENCHMARK(StreamAddValue)->Name("stream by name/ours")->Threads(1);
BENCHMARK(ChildLookup)->Name("child/ours")->Threads(1);
BENCHMARK(EventRecord)->Name("event/ours")->Threads(1);
BENCHMARK(PhaseMarks)->Name("phase/ours")->Threads(1);
BENCHMARK(PhaseClock)->Name("phase/clock")->Threads(1);

}  // namespace
