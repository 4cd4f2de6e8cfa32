#include "machine/machine_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fake_machine.h"
#include "kernel/proc_reader.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

const Identity kAgent{"dlrm", {{"instance", "rep_0"}, {"role", "agent"}}};
const Identity kTrainer{"dlrm", {{"instance", "rep_0"}, {"role", "trainer"}}};

// The test's own process, as a worker.
Process Self(uint32_t ordinal = 0) {
  ProcReader proc;
  Process process;
  process.identity = kTrainer;
  process.ordinal = ordinal;
  process.alive = true;
  process.id.pid = static_cast<uint32_t>(getpid());
  process.id.start_ticks = proc.Stat("self").value().start_ticks;
  process.id.pid_namespace = proc.PidNamespace("self").value();
  return process;
}

class MachineMetricsTest : public ::testing::Test {
 protected:
  // By `name{role,label=value}`.
  std::map<std::string, double> Shown() {
    snapshot_ = metrics_.Collect(processes_);
    std::map<std::string, double> shown;
    std::string former;
    for (const FamilyLayout& family : snapshot_->layout->families) {
      EXPECT_LT(former, family.name) << "sorted, and no name twice";
      former = family.name;
      for (const SeriesLayout& series : family.series) {
        std::string name = family.name + "{" + snapshot_->layout->identities.at(series.identity).labels.back().second;
        for (const auto& [label, value] : series.labels) name.append(",").append(label).append("=").append(value);
        const double value = snapshot_->values.at(series.first_value);
        if (IsAbsent(value)) continue;
        EXPECT_TRUE(shown.emplace(name + "}", value).second) << name << " occurs twice";
      }
    }
    EXPECT_EQ(snapshot_->values.size(), snapshot_->layout->value_count);
    return shown;
  }
  // The bound is that of the test.
  std::map<std::string, double> AwaitSeries(const std::string& name, bool there = true) {
    for (;;) {
      auto shown = Shown();
      if (shown.contains(name) == there) return shown;
      std::this_thread::yield();
    }
  }

  std::vector<Process> processes_;
  std::shared_ptr<const Snapshot> snapshot_;
  MachineMetrics metrics_{{.identity = kAgent, .read = ReadOf({.state_directory = "/tmp"})}};
};

TEST_F(MachineMetricsTest, DisabledItShowsAndReadsNothing) {
  processes_ = {Self()};
  EXPECT_THAT(Shown(), IsEmpty());
  const auto layout = snapshot_->layout;
  metrics_.Use(false, seconds(10));
  EXPECT_THAT(Shown(), IsEmpty());
  EXPECT_EQ(snapshot_->layout, layout);
}

TEST_F(MachineMetricsTest, TheMachineIsTheAgentsAndAWorkersValuesAreItsOwn) {
  processes_ = {Self(0), Self(1)};
  metrics_.Use(true, seconds(10));
  AwaitSeries("persia_filesystem_size_bytes{agent,use=state}");
  const auto shown = AwaitSeries("persia_process_max_fds{trainer,process=1}");
  EXPECT_EQ(shown.at("persia_filesystem_device_error{agent,use=state}"), 0);
  EXPECT_GT(shown.at("persia_filesystem_size_bytes{agent,use=state}"), 0);
  for (const std::string process : {"0", "1"}) {
    EXPECT_THAT(
        shown, Contains(Key("persia_process_context_switches_total{trainer,ctxswitchtype=voluntary,process=" + process + "}")));
    EXPECT_GT(shown.at("persia_process_proportional_memory_bytes{trainer,process=" + process + "}"), 0);
  }
}

TEST_F(MachineMetricsTest, AWorkerThatEndsOrBeginsChangesTheSeries) {
  metrics_.Use(true, seconds(10));
  processes_ = {Self(0)};
  AwaitSeries("persia_process_max_fds{trainer,process=0}");
  const auto layout = snapshot_->layout;
  EXPECT_THAT(Shown(), Contains(Key("persia_process_max_fds{trainer,process=0}")));
  EXPECT_EQ(snapshot_->layout, layout);
  processes_[0].alive = false;
  EXPECT_THAT(Shown(), Not(Contains(Key("persia_process_max_fds{trainer,process=0}"))));
  processes_[0].alive = true;
  processes_.push_back(Self(4));
  AwaitSeries("persia_process_max_fds{trainer,process=4}");
}

TEST_F(MachineMetricsTest, ItCanBeSwitchedOffAndOnAgain) {
  metrics_.Use(true, seconds(10));
  AwaitSeries("persia_filesystem_device_error{agent,use=state}");
  metrics_.Use(false, seconds(10));
  EXPECT_THAT(Shown(), IsEmpty());
  metrics_.Use(true, seconds(10));
  AwaitSeries("persia_filesystem_device_error{agent,use=state}");
}

// The second reading hangs.
class ReadingThatHangs {
 public:
  ~ReadingThatHangs() { gate_.set_value(); }
  MachineReader::Read Read() {
    return [gate = gate_.get_future().share(), readings = readings_](auto, MachineReader::TimePoint now) {
      if (++*readings > 1) gate.wait();
      return ReadOf({})({}, now);
    };
  }
  void AwaitReading(int number) const {
    while (*readings_ < number) std::this_thread::yield();
  }

 private:
  std::promise<void> gate_;
  const std::shared_ptr<std::atomic<int>> readings_ = std::make_shared<std::atomic<int>>(0);
};

TEST_F(MachineMetricsTest, IfAReadingHangsOldValuesAreLeftOutAndNoCallWaits) {
  ReadingThatHangs hanging;
  std::chrono::steady_clock::duration later{0};
  MachineMetrics metrics(
      {.identity = kAgent, .read = hanging.Read(), .now = [&] { return std::chrono::steady_clock::now() + later; }});
  metrics.Use(true, seconds(10));
  while (metrics.Collect({})->values.empty()) std::this_thread::yield();
  const std::vector<Process> another{Self()};
  metrics.Collect(another);  // wants a reading
  hanging.AwaitReading(2);
  EXPECT_FALSE(metrics.Collect(another)->values.empty()) << "the newest values";
  later = seconds(60);
  EXPECT_TRUE(metrics.Collect(another)->values.empty());
  EXPECT_TRUE(metrics.Collect(another)->layout->families.empty());
  metrics.Use(false, seconds(10));
}

}  // namespace
}  // namespace persia::agent
