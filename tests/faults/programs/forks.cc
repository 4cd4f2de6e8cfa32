// Two first uses of the library, one after the other, while another thread forks in a loop.
//
//   forks FIRST SECOND     c, instrument, stream, event, emit, handler or init
//
// Then both are used again and again, with new names: each takes the locks that the first use took. Each child uses the library
// too, so that a lock that is held in it would be noticed. Prints the counts.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "own.h"
#include "persia/metrics/c.h"
#include "persia/metrics/metrics.h"

namespace {

using faults::Fail;
using faults::Print;

constexpr int kForks = 16;
constexpr int kUses = 4;  // a fork

struct Way {
  const char* name;
  void (*use)(const char* metric);
};

void UseC(const char* metric) { persia_metrics_counter_add(persia_metrics_counter("forks_c", metric, nullptr), 1); }
void UseInstrument(const char* metric) { persia::metrics::Counter("forks_instrument", metric).Increment(); }
void UseStream(const char* metric) { persia::metrics::PutMetric(metric, 1, "forks_stream"); }
void UseEvent(const char* metric) { persia::metrics::events::Record("forks_event", metric); }
void UseEmit(const char* metric) { persia::metrics::benchmarkai::Emit({{metric, 1}}); }
void UseHandler(const char* metric) {
  persia::metrics::events::Configure(nullptr, metric);
  persia::metrics::Configure(nullptr, metric);
  UseStream(metric);
  UseEvent(metric);
}
void UseInit(const char* /*metric*/) { persia::metrics::Init(); }

constexpr std::array<Way, 7> kWays = {{{"c", UseC},
                                       {"instrument", UseInstrument},
                                       {"stream", UseStream},
                                       {"event", UseEvent},
                                       {"emit", UseEmit},
                                       {"handler", UseHandler},
                                       {"init", UseInit}}};

const Way& Named(const char* name) {
  for (const Way& way : kWays) {
    if (std::strcmp(way.name, name) == 0) return way;
  }
  Fail("a name of no way");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const Way& first = Named(argv[1]);
  const Way& second = Named(argv[2]);
  std::atomic<int> forks = 0;
  std::thread forker([&] {
    for (int i = 0; i < kForks; ++i) {
      ++forks;
      const pid_t child = fork();
      if (child < 0) Fail("fork");
      if (child == 0) {
        second.use("in_child");
        first.use("in_child");
        _exit(0);
      }
      int status = 0;
      if (waitpid(child, &status, 0) != child) Fail("waitpid");
      if (status != 0) {
        Print("a child's status %x", status);
      }
    }
  });
  for (int i = 0; i < kForks * kUses; ++i) {
    while (forks <= i / kUses) {
      std::this_thread::yield();
    }
    char metric[32];
    std::snprintf(metric, sizeof metric, "use_%d", i);
    first.use(metric);
    second.use(metric);
  }
  forker.join();
  Print("pid parent %d", getpid());
  Print("forks %d uses %d", kForks, kUses);
}
