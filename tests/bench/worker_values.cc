// What the kernel's values of a worker and the GPUs cost in a collection, and those of the machine in its thread.
//
//   bench_worker_values        prints the microseconds of each round, as JSON
//
// `worker`: persia_process_* of one of 64 living processes. `reads`: opening and reading the same files of /proc, without
// parsing: the floor. `machine`: one reading of all sources of agent/machine, without workers. `gpus`: the collector's part for
// 8 GPUs of 8 of these processes; the driver is called by another process.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/gpu_watch.h"
#include "kernel/proc_reader.h"
#include "machine/machine_sources.h"
#include "workers/worker_metrics.h"

namespace persia::agent {
namespace {

constexpr int kProcesses = 64;
constexpr int kRounds = 41;
constexpr int kCollectsPerRound = 5;
constexpr size_t kMemory = 8 << 20;
constexpr size_t kGpus = 8;

// Waits to be killed.
pid_t StartProcess() {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    [[maybe_unused]] static volatile char memory[kMemory];
    for (size_t at = 0; at < kMemory; at += 4096) memory[at] = 'x';
    for (;;) pause();
  }
  if (pid < 0) {
    std::perror("bench_worker_values: fork");
    std::exit(2);
  }
  return pid;
}

Process Describe(ProcReader& proc, pid_t pid, uint32_t ordinal) {
  Process process;
  process.identity = {"bench", {{"instance", "rep_0"}, {"role", "trainer"}}};
  process.ordinal = ordinal;
  process.alive = true;
  process.id.pid = static_cast<uint32_t>(pid);
  process.id.pid_namespace = proc.PidNamespace("self").value_or(0);
  process.id.start_ticks = proc.Stat(std::to_string(pid)).value_or(ProcStat()).start_ticks;
  return process;
}

void ReadFile(const std::string& path) {
  char buffer[16 << 10];
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (file >= 0 && read(file, buffer, sizeof buffer) > 0) continue;
  if (file >= 0) close(file);
}

template <class Work>
double MicrosecondsOf(int times, Work work) {
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count() / times;
}

void Print(const char* name, const std::vector<double>& values, const char* end) {
  std::printf("\"%s\": [", name);
  for (size_t i = 0; i < values.size(); ++i) std::printf("%s%.3f", i == 0 ? "" : ", ", values[i]);
  std::printf("]%s", end);
}

// Each device has all values and one process.
GpuSample SampleOf(const std::vector<pid_t>& pids) {
  GpuSample sample{.boot_ns = UINT64_MAX / 2, .driver = "550.54"};
  for (size_t i = 0; i < kGpus; ++i) {
    GpuDevice device{.gpu = std::to_string(i), .uuid = "GPU-" + std::to_string(i), .model = "NVIDIA H100 80GB HBM3"};
    device.pids = {static_cast<uint32_t>(pids[i])};
    device.values.fill(0.25);
    sample.devices.push_back(std::move(device));
  }
  return sample;
}

std::vector<double> MeasureGpus(ProcReader& proc, const std::vector<pid_t>& pids, const std::vector<Process>& processes) {
  char path[] = "/tmp/persia-bench-XXXXXX";
  close(mkstemp(path));
  std::ofstream(path, std::ios::binary) << EncodeGpuMessage(SampleOf(pids));
  const std::vector<std::string> reader = {"/bin/sh", "-c", std::string("cat ") + path + " >&3; exec sleep 3600"};
  GpuWatch gpus({.agent = {"bench", {{"instance", "rep_0"}, {"role", "agent"}}},
                 .initial_pid_namespace = proc.PidNamespace("self").value_or(0),
                 .find_library = [] { return "the driver's"; },
                 .reader = [&](const std::string&,
                               auto interval) { return GpuReader::Options{.command = reader, .interval = interval}; }});
  gpus.Use(true, std::chrono::hours(1));
  const auto is_sampled = [&] { return gpus.snapshot() != nullptr && gpus.snapshot()->values.size() > kGpus * kGpuFields / 2; };
  while (!is_sampled()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    gpus.Look(processes);
  }
  unlink(path);
  std::vector<double> found;
  for (int round = 0; round < kRounds; ++round) {
    found.push_back(MicrosecondsOf(kCollectsPerRound, [&] { gpus.Look(processes); }));
  }
  return found;
}

int Measure() {
  ProcReader proc;
  std::vector<pid_t> pids;
  std::vector<Process> processes;
  for (uint32_t i = 0; i < kProcesses; ++i) {
    pids.push_back(StartProcess());
    processes.push_back(Describe(proc, pids.back(), i));
  }
  WorkerMetrics metrics({.processes = [&] { return std::span<Process>(processes); }, .agent_version = "1"});
  MachineSources machine({.state_directory = "/dev/shm"});
  std::vector<double> worker;
  std::vector<double> reads;
  std::vector<double> all;
  auto time = std::chrono::steady_clock::now();
  metrics.Collect();
  for (int round = 0; round < kRounds; ++round) {
    worker.push_back(MicrosecondsOf(kCollectsPerRound, [&] { metrics.Collect(); }) / kProcesses);
    reads.push_back(MicrosecondsOf(kCollectsPerRound,
                                   [&] {
                                     for (const pid_t pid : pids) {
                                       const std::string directory = "/proc/" + std::to_string(pid) + "/";
                                       for (const char* file : {"stat", "statm", "schedstat", "io"}) ReadFile(directory + file);
                                     }
                                   }) /
                    kProcesses);
    all.push_back(MicrosecondsOf(1, [&] { machine.Read({}, time += std::chrono::seconds(1)); }));
  }
  const std::vector<double> gpus = MeasureGpus(proc, pids, processes);
  for (const pid_t pid : pids) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  std::printf("{");
  Print("worker", worker, ", ");
  Print("reads", reads, ", ");
  Print("machine", all, ", ");
  Print("gpus", gpus, "}\n");
  return 0;
}

}  // namespace
}  // namespace persia::agent

int main() { return persia::agent::Measure(); }
