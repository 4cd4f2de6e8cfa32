// Whether a collection costs more after many processes have ended than after few.
//
//   bench_ended_processes build/release/tests/chaos/worker/chaos_worker FEW MANY [--json]
//
// Two jobs, each with the agent's collector. In one FEW short processes start and end, one after another, in the other MANY;
// after that both have the same series. Then both collect in turns, in one process: two processes of the same program differ by
// a third in such short times, because of their memory layout. Exits with 1 if the ratio of the medians is above 1.2, or a file
// of an ended process is left.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "temporary_directory.h"
#include "workers/exits.h"
#include "workers/segment_source.h"
#include "workers/worker_metrics.h"

namespace persia::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kProcessesPerCollect = 10;
constexpr int kRounds = 101;
constexpr int kCollectsPerRound = 100;
constexpr double kAllowed = 1.2;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "bench_ended_processes: %s\n", what.c_str());
  std::exit(2);
}

// A job's directory and its collector.
class Job {
 public:
  explicit Job(std::string worker)
      : worker_(std::move(worker)), descriptor_(open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    const std::string& name = directory_.path();
    SegmentSourceOptions options;
    options.directory = name;
    options.job = "bench";
    options.run_id = options.ledger.run_id = "bench";
    options.ledger.file = std::make_shared<DiskJournalFile>(
        DiskJournalFile::Options{.directory_fd = descriptor_, .directory = name, .name = "agent.state"});
    source_ = std::make_unique<SegmentSource>(std::move(options));
  }
  ~Job() { close(descriptor_); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Starts and ends processes one after another, with collections in between, as from an agent's ticks.
  void Run(int processes) {
    const std::string variable = "PERSIA_METRICS_DIR=" + directory_.path();
    std::string run = "PERSIA_RUN_ID=bench";
    std::string where = variable;
    char flag[] = "--short";
    char* const arguments[] = {worker_.data(), flag, nullptr};
    char* const environment[] = {where.data(), run.data(), nullptr};
    for (int i = 1; i <= processes; ++i) {
      pid_t pid = 0;
      int status = -1;
      if (posix_spawn(&pid, worker_.c_str(), nullptr, nullptr, arguments, environment) != 0 ||
          waitpid(pid, &status, 0) != pid || status != 0) {
        Fail("cannot run " + worker_ + " --short");
      }
      if (i % kProcessesPerCollect == 0 || i == processes) {
        Collect();
      }
    }
    if (source_->stats().retired != static_cast<uint64_t>(processes)) {
      Fail("retired " + std::to_string(source_->stats().retired) + " processes of " + std::to_string(processes));
    }
    // The state of the last ones may be written after their collection; the next one removes their files.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (std::string left = Left(); !left.empty(); left = Left()) {
      if (std::chrono::steady_clock::now() > end) Fail(left + " is left");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      Collect();
    }
  }
  void Collect() {
    series_ = CountSeries(*source_->Collect()->layout);
    worker_metrics_.Collect();
  }
  // A collection's time in microseconds.
  double Time() {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < kCollectsPerRound; ++i) {
      Collect();
    }
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count() / kCollectsPerRound;
  }
  [[nodiscard]] size_t series() const { return series_; }

 private:
  // A segment that is left in the directory; empty: there is none.
  [[nodiscard]] std::string Left() const {
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      if (entry.path().extension() == ".seg") return entry.path().string();
    }
    return "";
  }

  const TemporaryDirectory directory_{"/dev/shm"};
  std::string worker_;
  const int descriptor_;
  std::unique_ptr<SegmentSource> source_;
  size_t series_ = 0;
  WorkerMetrics worker_metrics_{{.processes = [this] { return source_->processes(); },
                                 .agent_version = "1",
                                 .run_id = "bench",
                                 .ended = [this] { return source_->ended(); }}};
};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// The microseconds of each round: [[after few], [after many]].
void PrintJson(const std::vector<double>& after_few, const std::vector<double>& after_many) {
  const auto list = [](const std::vector<double>& values) {
    std::string text;
    for (const double value : values) {
      text += (text.empty() ? "" : ",") + std::to_string(value);
    }
    return "[" + text + "]";
  };
  std::printf("[%s,%s]\n", list(after_few).c_str(), list(after_many).c_str());
}

int Compare(const std::string& worker, int few_processes, int many_processes, bool json) {
  Job few(worker);
  Job many(worker);
  few.Run(few_processes);
  many.Run(many_processes);
  if (few.series() == 0 || few.series() != many.series()) {
    Fail("the jobs have " + std::to_string(few.series()) + " and " + std::to_string(many.series()) + " series");
  }
  std::vector<double> after_few;
  std::vector<double> after_many;
  for (int round = 0; round < kRounds; ++round) {
    after_few.push_back(few.Time());
    after_many.push_back(many.Time());
  }
  if (json) {
    PrintJson(after_few, after_many);
    return 0;
  }
  const double ratio = Median(after_many) / Median(after_few);
  std::printf("a collection of %zu series: %.1f us after %d ended processes, %.1f us after %d: ratio %.3f, allowed %.1f\n",
              few.series(), Median(after_few), few_processes, Median(after_many), many_processes, ratio, kAllowed);
  return ratio <= kAllowed ? 0 : 1;
}

}  // namespace
}  // namespace persia::agent

int main(int argc, char** argv) {
  const int few = argc >= 4 ? std::atoi(argv[2]) : 0;
  const int many = argc >= 4 ? std::atoi(argv[3]) : 0;
  if (few <= 0 || many <= 0) {
    std::fputs("usage: bench_ended_processes CHAOS_WORKER FEW MANY [--json]\n", stderr);
    return 64;
  }
  return persia::agent::Compare(argv[1], few, many, argc == 5);
}
