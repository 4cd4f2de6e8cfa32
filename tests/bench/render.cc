// The cost of a collection, from the workers' memory to the text that Prometheus reads, beside prometheus-cpp's collect and
// serialise of as many series with the same names, labels and values.
//
//   bench_render WORKER [--benchmark_...]     WORKER: the program bench_worker
//
// Names are `render/library/series/processes`. Times are of one line; `allocations` are those of a collection.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "format/scrape_renderer.h"
#include "temporary_directory.h"
#include "workers/segment_source.h"

namespace {

uint64_t allocations = 0;

}  // namespace

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { std::free(memory); }

namespace persia::agent {
namespace {

std::string worker_program;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "bench_render: %s\n", what);
  std::exit(2);
}

// A worker process, spoken to through pipes.
class Worker {
 public:
  Worker(const std::string& directory, int series, int replica) {
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
      Fail("no pipe");
    }
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      setenv("PERSIA_METRICS_DIR", directory.c_str(), 1);
      setenv("REPLICA_INDEX", std::to_string(replica).c_str(), 1);
      setenv("PERSIA_METRICS_SEGMENT_BYTES", "268435456", 1);
      execl(worker_program.c_str(), worker_program.c_str(), std::to_string(series).c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_ = fdopen(in[1], "w");
    from_ = fdopen(out[0], "r");
    Await();
  }
  ~Worker() {
    std::fclose(to_);
    std::fclose(from_);
    waitpid(pid_, nullptr, 0);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void Change() {
    std::fputc('\n', to_);
    std::fflush(to_);
    Await();
  }

 private:
  void Await() {
    char line[32];
    if (std::fgets(line, sizeof line, from_) == nullptr) {
      Fail("a worker ended");
    }
  }

  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

size_t Lines(const std::string& text) {
  size_t lines = 0;
  bool at_begin = true;
  for (const char c : text) {
    lines += at_begin && c != '#' ? 1 : 0;
    at_begin = c == '\n';
  }
  return lines;
}

// `series` in all, shared by that many replicas. All values are others at each collection.
void Ours(benchmark::State& state) {
  const TemporaryDirectory directory("/dev/shm");
  const int64_t processes = state.range(1);
  std::vector<std::unique_ptr<Worker>> workers;
  for (int64_t i = 0; i < processes; ++i) {
    workers.push_back(
        std::make_unique<Worker>(directory.path(), static_cast<int>(state.range(0) / processes), static_cast<int>(i)));
  }
  SegmentSourceOptions options;
  options.directory = directory.path();
  options.job = "bench";
  options.limits = {.series = 2'000'000, .series_of_instance = 2'000'000, .label_value_bytes = 1024};
  SegmentSource source(std::move(options));
  TextRenderer renderer;
  std::string text;
  const auto collect = [&] { renderer.Render(*source.Collect(), text); };
  collect();  // the layout is made
  collect();
  const auto lines = Lines(text);
  uint64_t allocated = 0;
  for (auto _ : state) {
    state.PauseTiming();
    for (const auto& worker : workers) {
      worker->Change();
    }
    state.ResumeTiming();
    const uint64_t before = allocations;
    collect();
    allocated += allocations - before;
  }
  state.counters["lines"] = static_cast<double>(lines);
  state.counters["bytes"] = static_cast<double>(text.size());
  state.counters["allocations"] = static_cast<double>(allocated) / static_cast<double>(state.iterations());
}

void PrometheusCpp(benchmark::State& state) {
  prometheus::Registry registry;
  const int64_t processes = state.range(1);
  const auto each = static_cast<int>(state.range(0) / processes);
  constexpr int kNames = 50;
  uint64_t random = 1;
  const auto next = [&random] {
    random = random * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(random >> 11) / 9007199254740992.0;
  };
  std::vector<prometheus::Gauge*> gauges;
  std::vector<prometheus::Counter*> counters;
  for (int name = 0; name < kNames; ++name) {
    const std::string number = std::to_string(name);
    prometheus::Family<prometheus::Gauge>* norms = nullptr;
    prometheus::Family<prometheus::Counter>* seconds = nullptr;
    if (name % 2 == 0) {
      norms = &prometheus::BuildGauge()
                   .Name("embedding_norm_" + number)
                   .Help("Of the rows of a table, by feature.")
                   .Register(registry);
    } else {
      seconds = &prometheus::BuildCounter()
                     .Name("embedding_update_seconds_" + number)
                     .Help("Spent on a table, by feature.")
                     .Register(registry);
    }
    for (int64_t process = 0; process < processes; ++process) {
      for (int i = 0; i < each / kNames + (name < each % kNames ? 1 : 0); ++i) {
        const prometheus::Labels labels = {{"job", "bench"},
                                           {"instance", "rep_" + std::to_string(process)},
                                           {"table", "table_" + std::to_string(i % 10)},
                                           {"feature", "feature_" + std::to_string(i)}};
        if (norms != nullptr) {
          gauges.push_back(&norms->Add(labels));
        } else {
          counters.push_back(&seconds->Add(labels));
        }
      }
    }
  }
  const prometheus::TextSerializer serializer;
  std::string text;
  const auto collect = [&] { text = serializer.Serialize(registry.Collect()); };
  for (auto _ : state) {
    state.PauseTiming();
    std::for_each(gauges.begin(), gauges.end(), [&](auto* gauge) { gauge->Set(next()); });
    std::for_each(counters.begin(), counters.end(), [&](auto* counter) { counter->Increment(next()); });
    const uint64_t before = allocations;
    state.ResumeTiming();
    collect();
    state.counters["allocations"] = static_cast<double>(allocations - before);
  }
  state.counters["lines"] = static_cast<double>(Lines(text));
  state.counters["bytes"] = static_cast<double>(text.size());
}

void Register() {
  const auto add = [](const char* who, void (*run)(benchmark::State&), int64_t series, int64_t processes) {
    benchmark::RegisterBenchmark(("render/" + std::string(who)).c_str(), run)
        ->Args({series, processes})
        ->Unit(benchmark::kMillisecond);
  };
  add("ours", &Ours, 100'000, 4);
  add("prometheus-cpp", &PrometheusCpp, 100'000, 4);
  for (const int64_t series : {1'000, 10'000, 1'000'000}) {
    add("ours", &Ours, series, 4);
  }
  for (const int64_t processes : {1, 10, 100}) {
    add("ours", &Ours, 100'000, processes);
  }
}

}  // namespace
}  // namespace persia::agent

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc != 2) {
    std::fputs("usage: bench_render WORKER [--benchmark_...]\n", stderr);
    return 64;
  }
  persia::agent::worker_program = argv[1];
  persia::agent::Register();
  benchmark::RunSpecifiedBenchmarks();
}
