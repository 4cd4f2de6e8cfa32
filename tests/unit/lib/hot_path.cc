// The hot calls as a user's code makes them. check_hot_path.py and callgrind read the machine code.
//
//   hot_path CALL TIMES    makes the call that many times
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "persia/metrics/metrics.h"

using persia::metrics::Counter;
using persia::metrics::Gauge;
using persia::metrics::Histogram;
using persia::metrics::Stream;

// Not inlined, and of a plain name, so that each can be found.
extern "C" {
[[gnu::noinline]] void HotIncrement(Counter& counter) { counter.Increment(); }
[[gnu::noinline]] void HotIncrementBy(Counter& counter, uint64_t by) { counter.Increment(by); }
[[gnu::noinline]] void HotIncrementByDouble(Counter& counter, double by) { counter.Increment(by); }
[[gnu::noinline]] void HotSet(Gauge& gauge, double value) { gauge.Set(value); }
[[gnu::noinline]] void HotObserve(Histogram& histogram, double value) { histogram.Observe(value); }
[[gnu::noinline]] void HotAdd(Stream& stream, double value) { stream.Add(value); }
[[gnu::noinline]] void HotChild(persia::metrics::Family<Counter>& family) { family.With({{"feat", "user_id"}}).Increment(); }
[[gnu::noinline]] void HotRecord(double value) {
  persia::metrics::events::Record("hot", "checkpoint", {{"step", int64_t{1}}, {"seconds", value}, {"path", "/ckpt/last"}});
}
[[gnu::noinline]] void HotPutMetric(double value) { persia::metrics::PutMetric("stream", value, "hot"); }
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: hot_path CALL TIMES\n");
    return 2;
  }
  const long times = std::atol(argv[2]);
  Counter counter("hot", "counter");
  Gauge gauge("hot", "gauge");
  Stream stream("hot", "stream");
  Histogram histogram("hot", "histogram", persia::metrics::ExponentialBounds(0.001, 2, 11));
  persia::metrics::Family<Counter> family("hot", "family");
  const auto call = [&](const char* name, const auto& body) {
    if (std::strcmp(argv[1], name) == 0) {
      for (long i = 0; i < times; ++i) {
        body(i);
      }
    }
  };
  call("HotIncrement", [&](long) { HotIncrement(counter); });
  call("HotIncrementBy", [&](long i) { HotIncrementBy(counter, static_cast<uint64_t>(i)); });
  call("HotIncrementByDouble", [&](long i) { HotIncrementByDouble(counter, static_cast<double>(i)); });
  call("HotSet", [&](long i) { HotSet(gauge, static_cast<double>(i)); });
  call("HotObserve", [&](long i) { HotObserve(histogram, static_cast<double>(i % 8)); });
  call("HotAdd", [&](long i) { HotAdd(stream, static_cast<double>(i % 8)); });
  call("HotChild", [&](long) { HotChild(family); });
  call("HotRecord", [&](long i) { HotRecord(static_cast<double>(i % 8)); });
  call("HotPutMetric", [&](long i) { HotPutMetric(static_cast<double>(i % 8)); });
  return 0;
}
