// A program that counts before main, after main, at exit and in a thread that outlives main's locals.
#include <cstdlib>
#include <thread>

#include "persia/metrics/metrics.h"

namespace {

using persia::metrics::Counter;
using persia::metrics::Family;
using persia::metrics::Gauge;

Counter MakeAndCount(const char* name) {
  Counter counter("lifetime", name);
  counter.Increment();
  return counter;
}

struct CountsAtTheEnd {
  ~CountsAtTheEnd() {
    Counter("lifetime", "after main").Increment();
    Family<Counter>("lifetime", "made after main").With({{"a", "b"}}).Increment(0.5);
    Gauge("lifetime", "gauge").Set(2);
    persia::metrics::events::Record("lifetime", "end", {{"text", "after main"}});
    std::thread([] { Counter("lifetime", "after main").Increment(); }).join();
  }
} counts_at_the_end;  // made before the counter below, so destroyed after everything that it refers to

Counter before_main = MakeAndCount("before main");
Gauge gauge("lifetime", "gauge");

}  // namespace

int main() {
  gauge.Set(1);
  before_main.Increment();
  persia::metrics::Init({.role = "lifetime"});
  before_main.Increment();
  std::atexit([] { before_main.Increment(); });
  return 0;
}
