#include "machine/worker_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fake_machine.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;

ProcessId TestProcess() {
  ProcReader proc;
  return {.pid = static_cast<uint32_t>(getpid()),
          .start_ticks = proc.Stat("self").value().start_ticks,
          .pid_namespace = proc.PidNamespace("self").value()};
}

const WorkerDetails::TimePoint kFirst{seconds(100)};

TEST(WorkerDetailsTest, ShowsARealProcess) {
  ProcReader proc;
  WorkerDetails details(proc);
  const ProcessId self = TestProcess();
  details.Read(std::vector{self}, kFirst);
  const WorkerDetail& detail = details.values().at(self);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(detail.max_fds, limit.rlim_cur);
  EXPECT_GT(detail.proportional_bytes, 1U << 18);
  EXPECT_LT(detail.proportional_bytes, proc.Memory("self").value().resident_bytes + (64 << 20));
  EXPECT_TRUE(detail.swapped_bytes && detail.voluntary_switches && detail.involuntary_switches);
}

TEST(WorkerDetailsTest, OnlyTheSameProcessIsShown) {
  ProcReader proc;
  WorkerDetails details(proc);
  std::vector<ProcessId> others(4, TestProcess());
  others[0].start_ticks += 1;
  others[1].pid_namespace += 1;
  others[2].pid_namespace = 0;
  others[3].pid = 0x7fff'fff0;
  details.Read(others, kFirst);
  EXPECT_THAT(details.values(), IsEmpty());
}

// Processes whose /proc is made by the test.
class FakeProcessesTest : public ::testing::Test {
 protected:
  ProcessId Add(uint32_t pid) {
    const std::string directory = "/proc/" + std::to_string(pid);
    machine_.Write(directory + "/stat", std::to_string(pid) + " (p) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 500 0 0 0\n");
    machine_.Write(directory + "/status",
                   "Name:\tp\nVmSwap:\t      12 kB\nvoluntary_ctxt_switches:\t34\nnonvoluntary_ctxt_switches:\t5\n");
    machine_.Write(directory + "/limits", "Max open files            unlimited            unlimited            files     \n");
    machine_.Write(directory + "/ns/pid", "");
    SetMemory(pid, 100);
    ProcReader proc(machine_.root() + "/proc");
    return {.pid = pid, .start_ticks = 500, .pid_namespace = proc.PidNamespace(std::to_string(pid)).value()};
  }
  void SetMemory(uint32_t pid, int kibibytes) {
    machine_.Write("/proc/" + std::to_string(pid) + "/smaps_rollup",
                   "0-1 ---p 0 00:00 0  [rollup]\nRss: 9 kB\nPss:     " + std::to_string(kibibytes) + " kB\nPss_Anon: 1 kB\n");
  }

  FakeMachine machine_;
  ProcReader proc_{machine_.root() + "/proc"};
  WorkerDetails details_{proc_, [] { return kFirst; }};  // a reading takes no time
};

TEST_F(FakeProcessesTest, TextIsParsed) {
  const ProcessId process = Add(7);
  details_.Read(std::vector{process}, kFirst);
  const WorkerDetail& detail = details_.values().at(process);
  EXPECT_EQ(detail.swapped_bytes, 12U << 10);
  EXPECT_EQ(detail.voluntary_switches, 34U);
  EXPECT_EQ(detail.involuntary_switches, 5U);
  EXPECT_EQ(detail.max_fds, std::nullopt) << "unlimited";
  EXPECT_EQ(detail.proportional_bytes, 100U << 10);
}

TEST_F(FakeProcessesTest, ProportionalMemoryIsReadOnceAMinute) {
  const ProcessId process = Add(7);
  details_.Read(std::vector{process}, kFirst);
  SetMemory(7, 200);
  details_.Read(std::vector{process}, kFirst + seconds(59));
  EXPECT_EQ(details_.values().at(process).proportional_bytes, 100U << 10) << "the value stays in between";
  details_.Read(std::vector{process}, kFirst + seconds(60));
  EXPECT_EQ(details_.values().at(process).proportional_bytes, 200U << 10);
}

TEST_F(FakeProcessesTest, ProportionalMemoryTakesAtMostOneHundredthOfTheTime) {
  // Each reading takes a second.
  auto time = kFirst;
  WorkerDetails details(proc_, [&] { return time += std::chrono::milliseconds(500); });
  std::vector<ProcessId> processes;
  for (uint32_t pid = 1; pid <= 4; ++pid) processes.push_back(Add(pid));
  const auto known = [&](seconds after) {
    details.Read(processes, kFirst + after);
    int count = 0;
    for (const auto& [process, detail] : details.values()) count += detail.proportional_bytes ? 1 : 0;
    return count;
  };
  EXPECT_EQ(known(seconds(0)), 1);
  EXPECT_EQ(known(seconds(10)), 1);
  EXPECT_EQ(known(seconds(60)), 2);
  EXPECT_EQ(known(seconds(70)), 2);
  EXPECT_EQ(known(seconds(120)), 3) << "those without a value first";
  EXPECT_EQ(known(seconds(180)), 4);
}

TEST_F(FakeProcessesTest, AProcessThatEndedIsForgotten) {
  const ProcessId process = Add(7);
  details_.Read(std::vector{process}, kFirst);
  details_.Read({}, kFirst + seconds(1));
  EXPECT_THAT(details_.values(), IsEmpty());
  SetMemory(7, 200);
  details_.Read(std::vector{process}, kFirst + seconds(2));
  EXPECT_EQ(details_.values().at(process).proportional_bytes, 200U << 10);
}

}  // namespace
}  // namespace persia::agent
