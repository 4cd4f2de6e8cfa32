// Records programs of the library, lets the agent's reader read them in many ways, and prints the first wrong one.
//
//   litmus [--recordings N] [--program NAME] [--seed S] [--executions N]
//
// A program is recorded once for each seed, in a child process; the seed decides how its threads interleave. Then the reader
// reads it. The seeds are S (by default 0) and the N - 1 after it.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "executions.h"
#include "programs.h"
#include "recorder.h"
#include "temporary_directory.h"
#include "threads.h"

namespace {

using namespace persia::litmus;

struct Options {
  uint64_t recordings = 40;
  uint64_t seed = 0;
  std::string program = {};
  uint64_t executions = 50;
};

// What a child tells.
struct Result {
  uint64_t executions = 0;
  uint64_t loads = 0;
  bool complete = false;  // all executions were tried
  bool failed = false;
};

constexpr uint64_t kMostExhaustive = 20'000;

// All executions of a small program are tried for this seed.
uint64_t first_seed = 0;

Result Fail(const Program& program, uint64_t seed, uint64_t execution, const std::string& wrong) {
  const auto number = static_cast<unsigned long long>(seed);
  std::printf("%s, seed %llu, execution %llu: %s\nagain: litmus --program %s --seed %llu --recordings 1\n", program.name,
              number, static_cast<unsigned long long>(execution), wrong.c_str(), program.name, number);
  std::fflush(stdout);
  return {.executions = execution, .failed = true};
}

Result RecordAndRead(const Program& program, uint64_t seed, const std::string& directory, uint64_t executions) {
  Recorder& recorder = Recorder::Get();
  Notes notes;
  const Workload workload(notes, directory);
  recorder.Begin(seed);
  program.run(workload);
  recorder.End();
  if (const std::string wrong = recorder.Wrong(); !wrong.empty()) return Fail(program, seed, 0, wrong);
  if (recorder.named() == nullptr) return Fail(program, seed, 0, "the library has made no segment");
  const auto image = std::make_shared<const std::string>(recorder.SegmentImage());
  Result result;
  const auto execute = [&](Choices& choices) {
    const Execution execution = Execute(recorder, notes, image, choices);
    ++result.executions;
    result.loads += execution.loads;
    if (execution.loads == 0) return Fail(program, seed, result.executions, "the reader's loads are not answered").failed;
    return !execution.wrong.empty() && Fail(program, seed, result.executions, execution.wrong).failed;
  };
  if (program.is_small && seed == first_seed) {
    Exhaustive choices;
    do {
      if (execute(choices)) result.failed = true;
      result.complete = !choices.Advance();
    } while (!result.failed && !result.complete && result.executions < kMostExhaustive);
  }
  for (uint64_t i = 0; i < executions && !result.failed; ++i) {
    Seeded choices(seed * 1'000'003 + i);
    result.failed = execute(choices);
  }
  return result;
}

// A child, since a process has one registry.
struct Child {
  const Program* program;
  uint64_t seed;
  pid_t pid;
  int from;  // the result
};

[[noreturn]] void RunAsChild(const Child& child, int to, const std::string& directory, uint64_t executions) {
  constexpr unsigned kMostSeconds = 120;
  alarm(kMostSeconds);
  // The library says that space is short.
  if (const int null = open("/dev/null", O_WRONLY | O_CLOEXEC); null >= 0) dup2(null, STDERR_FILENO);
  if (child.program->before_fork != nullptr) {
    Notes unused;
    child.program->before_fork(Workload(unused, directory));
    if (const pid_t grandchild = fork(); grandchild != 0) {
      waitpid(grandchild, nullptr, 0);
      _exit(0);
    }
    alarm(kMostSeconds);
  }
  const Result mine = RecordAndRead(*child.program, child.seed, directory, executions);
  _exit(write(to, &mine, sizeof mine) == sizeof mine ? 0 : 1);
}

Child Start(const Program& program, uint64_t seed, const std::string& directory, uint64_t executions) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) std::abort();
  Child child{&program, seed, fork(), pipe_fds[0]};
  if (child.pid == 0) RunAsChild(child, pipe_fds[1], directory, executions);
  close(pipe_fds[1]);
  return child;
}

Result End(const Child& child) {
  Result result;
  if (read(child.from, &result, sizeof result) != sizeof result) {
    result = Fail(*child.program, child.seed, 0, "the process ended by a signal, or hung");
  }
  close(child.from);
  waitpid(child.pid, nullptr, 0);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const auto number = [&] { return std::strtoull(argv[i + 1], nullptr, 10); };
    if (name == "--recordings") options.recordings = number();
    if (name == "--seed") options.seed = number();
    if (name == "--program") options.program = argv[i + 1];
    if (name == "--executions") options.executions = number();
  }
  first_seed = options.seed;
  setenv("PERSIA_METRICS_SEGMENT_BYTES", "262144", 1);
  for (const char* variable : {"PERSIA_METRICS_DIR", "PERSIA_JOB_NAME", "PERSIA_METRICS_ENABLED"}) unsetenv(variable);
  const persia::TemporaryDirectory parent("/dev/shm");

  const auto began = std::chrono::steady_clock::now();
  Result all;
  uint64_t recordings = 0;
  std::map<std::string, bool> are_complete;
  std::deque<Child> children;
  const auto end_first = [&] {
    const Child child = children.front();
    children.pop_front();
    const Result result = End(child);
    ++recordings;
    all.executions += result.executions;
    all.loads += result.loads;
    all.failed = all.failed || result.failed;
    if (child.program->is_small && child.seed == first_seed) are_complete[child.program->name] = result.complete;
  };
  for (uint64_t seed = options.seed; seed < options.seed + options.recordings && !all.failed; ++seed) {
    // The files of the seed before the last one: their processes have ended.
    std::error_code ignored;
    if (seed >= 2) std::filesystem::remove_all(parent / std::to_string(seed - 2), ignored);
    for (const Program& program : Programs()) {
      if (all.failed || (!options.program.empty() && options.program != program.name)) continue;
      children.push_back(Start(program, seed, parent / std::to_string(seed), options.executions));
      if (children.size() >= std::max(1U, std::thread::hardware_concurrency())) end_first();
    }
  }
  while (!children.empty()) {
    end_first();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  for (const auto& [name, is_complete] : are_complete) {
    std::printf("%s: %s executions\n", name.c_str(), is_complete ? "all" : "not all");
  }
  std::printf("%llu recordings, %llu executions of the reader, %.0f million loads in %.1f s: %s\n",
              static_cast<unsigned long long>(recordings), static_cast<unsigned long long>(all.executions),
              static_cast<double>(all.loads) / 1e6, took.count(), all.failed ? "wrong" : "nothing wrong");
  return all.failed || recordings == 0 ? 1 : 0;
}
