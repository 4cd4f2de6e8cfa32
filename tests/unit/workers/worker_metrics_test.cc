#include "workers/worker_metrics.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "file_tree.h"
#include "kernel/kernel_text.h"
#include "kernel/proc_reader.h"
#include "waiting_child.h"
#include "workers/exits.h"

namespace persia::agent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Le;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

const Identity kServer{"dlrm", {{"instance", "rep_1"}, {"role", "server"}}};

bool CountsDiskWait() { return !ProcReader().Read("sys/kernel/task_delayacct").starts_with('0'); }

// The process's line in /proc/<pid>/stat, as if it had waited for disks for so many clock ticks.
std::string StatWithDiskWait(uint32_t pid, uint64_t ticks) {
  constexpr int kDiskWait = 42;  // of man 5 proc; the first field after the command is 3
  const std::string line(ProcReader().Read(std::to_string(pid), "/stat"));
  const size_t command_end = line.rfind(')') + 1;
  std::istringstream fields(line.substr(command_end));
  std::string changed = line.substr(0, command_end);
  std::string field;
  for (int i = 3; fields >> field; ++i) changed += " " + (i == kDiskWait ? std::to_string(ticks) : field);
  return changed + "\n";
}

class WorkerMetricsTest : public ::testing::Test {
 protected:
  // The exposed values, by `name{labels}` with the role first.
  std::map<std::string, double> Shown() {
    snapshot_ = metrics_->Collect();
    std::map<std::string, double> shown;
    for (const FamilyLayout& family : snapshot_->layout->families) {
      EXPECT_THAT(family.help, Not(IsEmpty())) << family.name;
      for (const SeriesLayout& series : family.series) {
        std::string name = family.name + "{" + snapshot_->layout->identities.at(series.identity).labels.back().second;
        for (const auto& [label, value] : series.labels) {
          name.append(",").append(label).append("=").append(value);
        }
        const double value = snapshot_->values.at(series.first_value);
        if (std::bit_cast<uint64_t>(value) != kAbsent) {
          EXPECT_TRUE(shown.emplace(name + "}", value).second) << name << " occurs twice";
        }
      }
    }
    return shown;
  }
  double Of(const std::string& series) {
    const auto shown = Shown();
    const auto found = shown.find(series);
    return found == shown.end() ? -1 : found->second;
  }

  std::vector<Process> processes_;
  std::vector<EndedProcesses> ended_;
  std::shared_ptr<const Snapshot> snapshot_;
  WorkerMetrics::Options options_{.processes = [this] { return std::span<Process>(processes_); },
                                  .agent_version = "9.9",
                                  .run_id = "agents-run",
                                  .ended = [this] { return std::span<const EndedProcesses>(ended_); },
                                  .shows_hangs = true};
  std::unique_ptr<WorkerMetrics> metrics_ = std::make_unique<WorkerMetrics>(options_);
};

// Two copies of the library in one process, such as the Python module and a C++ library, have two segments.
TEST_F(WorkerMetricsTest, CountsAProcessWithSeveralSegmentsOnce) {
  const Child child;
  processes_ = {child.Record(1), child.Record(0), child.Record(2)};
  const auto shown = Shown();
  for (const std::string name : {"cpu_seconds_total", "resident_memory_bytes", "open_fds", "threads"}) {
    EXPECT_TRUE(shown.contains("persia_process_" + name + "{trainer,process=0}")) << name;
    EXPECT_FALSE(shown.contains("persia_process_" + name + "{trainer,process=1}")) << name;
    EXPECT_FALSE(shown.contains("persia_process_" + name + "{trainer,process=2}")) << name;
  }
  EXPECT_EQ(shown.at("persia_process_up{trainer,process=1}"), 1);
  processes_[1].alive = false;  // of the program that it was before an exec
  EXPECT_TRUE(Shown().contains("persia_process_threads{trainer,process=1}"));
}

TEST_F(WorkerMetricsTest, ShowsWhatTheKernelKnowsOfAProcess) {
  const Child child;
  processes_ = {child.Record(3)};
  const auto shown = Shown();
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto of = [&](const std::string& name) { return shown.at("persia_process_" + name + "{trainer,process=3}"); };
  EXPECT_THAT(of("cpu_seconds_total"), AllOf(Ge(0.02), Le(10)));
  EXPECT_THAT(of("resident_memory_bytes"), AllOf(Ge(Child::kTouchedBytes), Le(of("virtual_memory_bytes"))));
  const auto listed = [&](const std::string& what) {
    const std::filesystem::directory_iterator entries("/proc/" + std::to_string(processes_[0].id.pid) + what);
    return std::distance(begin(entries), end(entries));
  };
  EXPECT_EQ(of("threads"), listed("/task"));  // a sanitizer may have its own thread
  EXPECT_EQ(of("open_fds"), listed("/fd"));
  EXPECT_GE(of("open_fds"), Child::kDescriptors);
  EXPECT_THAT(of("start_time_seconds"), AllOf(Ge(now - 60), Le(now + 2)));
  EXPECT_EQ(of("last_change_timestamp_seconds"), 1700000000.25);
  EXPECT_EQ(of("up"), 1);
  EXPECT_EQ(of("restarts_total"), 0);
  EXPECT_GE(of("minor_page_faults_total"), Child::kTouchedBytes / sysconf(_SC_PAGESIZE) / 2);
  EXPECT_GE(of("major_page_faults_total"), 0);
  EXPECT_THAT(of("run_queue_wait_seconds_total"), AllOf(Ge(0), Le(60)));
  const std::string io(ProcReader().Read(std::to_string(processes_[0].id.pid), "/io"));
  EXPECT_EQ(of("read_bytes_total"), NumberOf(io, "read_bytes").value());
  EXPECT_EQ(of("write_bytes_total"), NumberOf(io, "write_bytes").value());
  EXPECT_EQ(shown.contains("persia_process_io_wait_seconds_total{trainer,process=3}"), CountsDiskWait());
  EXPECT_EQ(shown.size(), 17U + (CountsDiskWait() ? 1 : 0));
}

class DiskWaitTest : public WorkerMetricsTest {
 protected:
  // Of a process that has waited for 2.5 s, on a kernel with this setting.
  std::map<std::string, double> ShownWith(const std::string& task_delayacct) {
    const Child child;
    processes_ = {child.Record()};
    const std::string pid = std::to_string(processes_[0].id.pid);
    proc_.Write("sys/kernel/task_delayacct", task_delayacct);
    proc_.Write(pid + "/stat", StatWithDiskWait(processes_[0].id.pid, 5 * static_cast<uint64_t>(sysconf(_SC_CLK_TCK)) / 2));
    std::filesystem::create_symlink("/proc/" + pid + "/ns", proc_.path() + "/" + pid + "/ns");
    options_.proc = proc_.path();
    metrics_ = std::make_unique<WorkerMetrics>(options_);
    return Shown();
  }

  FileTree proc_;
};

TEST_F(DiskWaitTest, IsShownIfTheKernelCountsIt) {
  EXPECT_THAT(ShownWith("1\n"), Contains(Pair("persia_process_io_wait_seconds_total{trainer,process=0}", 2.5)));
}

TEST_F(DiskWaitTest, IsAbsentIfTheKernelDoesNotCountIt) {
  const auto shown = ShownWith("0\n");
  EXPECT_THAT(shown, Contains(Key("persia_process_cpu_seconds_total{trainer,process=0}")));
  EXPECT_THAT(shown, Not(Contains(Key("persia_process_io_wait_seconds_total{trainer,process=0}"))));
}

TEST_F(WorkerMetricsTest, ProcIsReadOnlyOfTheSameProcess) {
  const Child child;
  Process elsewhere = child.Record(0);
  elsewhere.id.pid_namespace += 1;
  Process reused = child.Record(1);
  reused.id.start_ticks += 1;
  Process unsaid = child.Record(2);
  unsaid.id.pid_namespace = 0;
  Process gone = child.Record(3);
  gone.id.pid = 0x7fff'fff0;
  processes_ = {elsewhere, reused, unsaid, gone};
  const auto shown = Shown();
  for (const std::string process : {"0", "1", "2", "3"}) {
    for (const std::string name :
         {"cpu_seconds_total", "resident_memory_bytes", "virtual_memory_bytes", "threads", "open_fds", "start_time_seconds",
          "minor_page_faults_total", "run_queue_wait_seconds_total", "read_bytes_total"}) {
      EXPECT_THAT(shown, Not(Contains(Key("persia_process_" + name + "{trainer,process=" + process + "}"))));
    }
    EXPECT_THAT(shown, Contains(Pair("persia_process_up{trainer,process=" + process + "}", 1)));
    EXPECT_THAT(shown, Contains(Key("persia_process_last_change_timestamp_seconds{trainer,process=" + process + "}")));
  }
}

TEST_F(WorkerMetricsTest, UpIsZeroAfterTheLastProcessEnded) {
  Child child;
  processes_ = {child.Record()};
  Shown();
  const auto layout = snapshot_->layout;
  child.End(SIGKILL);
  processes_[0].alive = false;
  const auto shown = Shown();
  EXPECT_EQ(shown.at("persia_process_up{trainer,process=0}"), 0);
  EXPECT_EQ(shown.at("persia_process_last_change_timestamp_seconds{trainer,process=0}"), 1700000000.25);
  EXPECT_THAT(shown, Not(Contains(Key("persia_process_cpu_seconds_total{trainer,process=0}"))));
  EXPECT_EQ(snapshot_->layout, layout);
}

TEST_F(WorkerMetricsTest, TheLayoutIsKeptWhileTheSameProcessesAreThere) {
  const Child one;
  const Child other;
  const Child third;
  processes_ = {one.Record(0), one.Record(1)};
  Shown();
  const auto layout = snapshot_->layout;
  processes_[0].last_change += std::chrono::seconds(5);
  processes_[1].restarts = 4;
  EXPECT_EQ(Of("persia_process_last_change_timestamp_seconds{trainer,process=0}"), 1700000005.25);
  EXPECT_EQ(Of("persia_process_restarts_total{trainer,process=1}"), 4);
  EXPECT_EQ(snapshot_->layout, layout);
  // Another process with the ordinal: other values under the same labels.
  processes_[1] = other.Record(1);
  EXPECT_GT(Of("persia_process_threads{trainer,process=1}"), 0);
  EXPECT_EQ(snapshot_->layout, layout);
  processes_.push_back(third.Record(2));
  EXPECT_GT(Of("persia_process_threads{trainer,process=2}"), 0);
  EXPECT_NE(snapshot_->layout, layout);
  processes_ = {other.Record(1)};
  EXPECT_EQ(Shown().size(), 17U + (CountsDiskWait() ? 1 : 0));
}

TEST_F(WorkerMetricsTest, NoProcessNoFamily) {
  EXPECT_THAT(Shown(), IsEmpty());
  EXPECT_THAT(snapshot_->layout->families, IsEmpty());
}

TEST_F(WorkerMetricsTest, TheAgentStandsForAJobWithoutWorkers) {
  options_.agent = Identity{"dlrm", {{"instance", "rep_0"}, {"role", "agent"}}};
  metrics_ = std::make_unique<WorkerMetrics>(options_);
  EXPECT_THAT(Shown(), ElementsAre(Pair("persia_job_info{agent,agent_version=9.9,run_id=agents-run}", 1)));
  const Child child;
  processes_ = {child.Record()};
  EXPECT_EQ(Shown().count("persia_job_info{agent,agent_version=9.9,run_id=agents-run}"), 0U);
}

TEST_F(WorkerMetricsTest, InfoIsOfTheNewestProcessOfEachIdentity) {
  const Child child;
  processes_ = {child.Record(0), child.Record(1), child.Record(2), child.Record(0)};
  processes_[0].restart_count = 7;
  processes_[1].id.start_ticks += 5;
  processes_[1].library_version = "0.2.0";
  processes_[2].id.start_ticks += 9;
  processes_[2].alive = false;  // later, but gone
  processes_[3].identity = kServer;
  processes_[3].library_version = "";
  processes_[3].run_id = "";
  const auto shown = Shown();
  EXPECT_THAT(shown, Contains(Pair(
                         "persia_job_info{trainer,agent_version=9.9,library_version=0.2.0,restart_count=2,run_id=run-1}", 1)));
  EXPECT_THAT(
      shown, Contains(Pair("persia_job_info{server,agent_version=9.9,library_version=,restart_count=2,run_id=agents-run}", 1)));
  const auto layout = snapshot_->layout;
  processes_[1].restart_count = 3;
  EXPECT_EQ(Of("persia_job_info{trainer,agent_version=9.9,library_version=0.2.0,restart_count=3,run_id=run-1}"), 1);
  EXPECT_NE(snapshot_->layout, layout);
}

TEST_F(WorkerMetricsTest, TheLibrarysVersionStaysKnownAfterTheEnd) {
  const Child child;
  processes_ = {child.Record()};
  Shown();
  const auto layout = snapshot_->layout;
  processes_[0].alive = false;
  processes_[0].library_version = "";
  for (int i = 0; i < 3; ++i) {
    Shown();
    EXPECT_EQ(snapshot_->layout, layout);
  }
  const Child successor;
  processes_[0] = successor.Record();
  processes_[0].library_version = "";
  EXPECT_EQ(Of("persia_job_info{trainer,agent_version=9.9,library_version=,restart_count=2,run_id=run-1}"), 1);
}

TEST_F(WorkerMetricsTest, TextFromWorkersIsTruncatedAndSanitized) {
  const Child child;
  processes_ = {child.Record()};
  processes_[0].run_id = "\xff" + std::string(10'000, 'x');
  processes_[0].library_version = std::string(200, 'v');
  for (const auto& [name, value] : Shown()) {
    EXPECT_LT(name.size(), 400U);
  }
  const Labels labels = snapshot_->layout->families[0].series[0].labels.ToList();
  EXPECT_THAT(labels.back().second, StartsWith("\xef\xbf\xbdxxx"));
}

TEST_F(WorkerMetricsTest, TheLastExitIsOfTheEndedProcessOrOfThePredecessor) {
  const Child child;
  processes_ = {child.Record()};
  EXPECT_THAT(Shown(), Not(Contains(Key(StartsWith("persia_process_last_exit_info")))));
  processes_[0].last_exit = "SIGKILL";
  EXPECT_EQ(Of("persia_process_last_exit_info{trainer,process=0,reason=SIGKILL}"), 1);
  const auto layout = snapshot_->layout;
  EXPECT_EQ(Of("persia_process_last_exit_info{trainer,process=0,reason=SIGKILL}"), 1);
  EXPECT_EQ(snapshot_->layout, layout);
  processes_[0].last_exit = "exit_1";
  EXPECT_EQ(Of("persia_process_last_exit_info{trainer,process=0,reason=exit_1}"), 1);
  EXPECT_EQ(Of("persia_process_last_exit_info{trainer,process=0,reason=SIGKILL}"), -1);
}

TEST_F(WorkerMetricsTest, EndsAreCountedByInstanceAndReason) {
  const Child child;
  processes_ = {child.Record()};
  // In another order than that of the identities' names; one has no process any more.
  ended_ = {{kServer, {{"SIGKILL", 2}}}, {kTrainer, {{"exit_0", 3}, {"exit_1", 1}}}};
  EXPECT_EQ(Of("persia_process_exits_total{server,reason=SIGKILL}"), 2);
  EXPECT_EQ(Of("persia_process_exits_total{trainer,reason=exit_0}"), 3);
  EXPECT_EQ(Of("persia_process_exits_total{trainer,reason=exit_1}"), 1);
  const auto layout = snapshot_->layout;
  ended_[1].exits["exit_0"] = 4;
  EXPECT_EQ(Of("persia_process_exits_total{trainer,reason=exit_0}"), 4);
  EXPECT_EQ(snapshot_->layout, layout);
  ended_[1].exits["SIGTERM"] = 1;
  EXPECT_EQ(Of("persia_process_exits_total{trainer,reason=SIGTERM}"), 1);
}

TEST_F(WorkerMetricsTest, OnlyARunningProcessHangsAndOnlyAnEndedOneHasDied) {
  const Child child;
  processes_ = {child.Record()};
  processes_[0].segment_used_ratio = 0.25;
  EXPECT_EQ(Of("persia_process_hung{trainer,process=0}"), 0);
  EXPECT_EQ(Of("persia_process_segment_used_ratio{trainer,process=0}"), 0.25);
  EXPECT_EQ(Of("persia_process_died{trainer,process=0}"), -1);
  processes_[0].verdict = HangVerdict::kHung;
  EXPECT_EQ(Of("persia_process_hung{trainer,process=0}"), 1);
  processes_[0].alive = false;
  processes_[0].died = true;
  EXPECT_EQ(Of("persia_process_hung{trainer,process=0}"), -1);
  EXPECT_EQ(Of("persia_process_died{trainer,process=0}"), 1);
  processes_[0].died = false;
  EXPECT_EQ(Of("persia_process_died{trainer,process=0}"), 0);
}

TEST(ProcessEndsTest, NamesCodesAndSignals) {
  EXPECT_EQ(ExitReason(0), "exit_0");
  EXPECT_EQ(ExitReason(3 << 8), "exit_3");
  EXPECT_EQ(ExitReason(SIGKILL), "SIGKILL");
  EXPECT_EQ(ExitReason(SIGSEGV | 0x80), "SIGSEGV") << "with a core";
  EXPECT_EQ(ExitReason(SIGRTMIN + 3), "signal_" + std::to_string(SIGRTMIN + 3));
}

TEST(ProcessEndsTest, ForgetsTheOldest) {
  ExitReasons ends;
  for (uint32_t pid = 1; pid <= ExitReasons::kMaxProcesses + 1; ++pid) {
    ends.Add(pid, 5, 0);
  }
  EXPECT_EQ(ends.ReasonOf(1, 5), std::nullopt);
  EXPECT_EQ(ends.ReasonOf(2, 5), "exit_0");
  EXPECT_EQ(ends.ReasonOf(2, 6), std::nullopt);
  ends.Add(2, 5, SIGKILL);
  EXPECT_EQ(ends.ReasonOf(2, 5), "SIGKILL");
}

}  // namespace
}  // namespace persia::agent
