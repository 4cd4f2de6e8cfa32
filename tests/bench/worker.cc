// A worker of a large job: has SERIES series, and changes all of them on request.
//
//   bench_worker SERIES      answers each line of stdin with a line, once all values are others; ends at the end of stdin
//
// Half of them are gauges, half counters, with 50 names and two labels; all values are doubles with many digits.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "persia/metrics/metrics.h"

namespace {

using persia::metrics::Counter;
using persia::metrics::Family;
using persia::metrics::Gauge;

constexpr int kNames = 50;

class Series {
 public:
  explicit Series(int count) {
    for (int name = 0; name < kNames; ++name) {
      const std::string number = std::to_string(name);
      const int many = count / kNames + (name < count % kNames ? 1 : 0);
      if (name % 2 == 0) {
        AddChildren(Family<Gauge>("embedding", "norm_" + number, {.help = "Of the rows of a table, by feature."}), many,
                    gauges_);
      } else {
        AddChildren(Family<Counter>("embedding", "update_seconds_" + number, {.help = "Spent on a table, by feature."}), many,
                    counters_);
      }
    }
  }

  void Change() {
    for (Gauge& gauge : gauges_) {
      gauge.Set(Next());
    }
    for (Counter& counter : counters_) {
      counter.Increment(Next());
    }
  }

 private:
  template <class Instrument>
  static void AddChildren(Family<Instrument> family, int count, std::vector<Instrument>& to) {
    for (int i = 0; i < count; ++i) {
      const std::string table = "table_" + std::to_string(i % 10);
      const std::string feature = "feature_" + std::to_string(i);
      to.push_back(family.With({{"table", table}, {"feature", feature}}));
    }
  }

  // From 0 to 1, with as many digits as a double has.
  double Next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 11) / 9007199254740992.0;
  }

  std::vector<Gauge> gauges_;
  std::vector<Counter> counters_;
  uint64_t state_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  const int count = argc == 2 ? std::atoi(argv[1]) : 0;
  const persia::metrics::InitResult result = persia::metrics::Init();
  if (count <= 0 || !result.exporting) {
    std::fprintf(stderr, "usage: bench_worker SERIES, with PERSIA_METRICS_DIR set (%s)\n", result.detail.c_str());
    return 64;
  }
  Series series(count);
  series.Change();
  std::puts("ready");
  std::fflush(stdout);
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c == '\n') {
      series.Change();
      std::puts("changed");
      std::fflush(stdout);
    }
  }
  return 0;
}
