#include "gpu/gpu_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "captured_log.h"
#include "kernel/proc_reader.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Identity kOwn{"dlrm", {{"instance", "rep_0"}, {"role", "agent"}}};

// The reader is a shell script, and this process is the rank.
class GpuWatchTest : public ::testing::Test {
 protected:
  GpuWatchTest() {
    Put("sample",
        GpuSample{.boot_ns = UINT64_MAX / 2,
                  .devices = {{.gpu = "0", .uuid = "GPU-a", .pids = {static_cast<uint32_t>(getpid())}}, {.gpu = "1"}}});
    Put("lost", GpuSample{.boot_ns = UINT64_MAX / 2, .devices = {{.gpu = "0", .is_lost = true}, {.gpu = "1"}}});
    Put("late", GpuXid{"0", 79, UINT64_MAX / 2});
    Put("early", GpuXid{"0", 31, 1});
  }

  void Put(const std::string& name, const GpuMessage& message) const {
    std::ofstream(folder_ / name, std::ios::binary) << EncodeGpuMessage(message);
  }

  // The reader writes a file of `folder_` when it is renamed to one of 1, 2, ...
  void Send(const std::string& name) {
    ASSERT_EQ(rename((folder_ / name).c_str(), (folder_ / std::to_string(++sent_)).c_str()), 0);
  }

  GpuWatch::Options Options() {
    return {
        .agent = kOwn,
        .initial_pid_namespace = proc_.PidNamespace("self").value(),
        .find_library = [] { return "somewhere"; },
        .reader =
            [this](const std::string& /*library*/, milliseconds interval) {
              const std::string script =
                  "; n=1; while :; do if test -e $n; then cat $n >&3; n=$((n + 1)); else sleep 0.005; fi; done";
              return GpuReader::Options{.command = {"/bin/sh", "-c", "cd " + folder_.path() + script}, .interval = interval};
            }};
  }

  std::vector<Process> Rank(int number) {
    return {{.id = {.pid = static_cast<uint32_t>(getpid()),
                    .start_ticks = proc_.Stat("self").value().start_ticks,
                    .pid_namespace = proc_.PidNamespace("self").value()},
             .identity = {"dlrm", {{"instance", "rep_" + std::to_string(number)}, {"role", "trainer"}}},
             .alive = true}};
  }

  // The instance of each series of this metric, by device.
  static std::map<std::string, std::string> Instances(const GpuWatch& gpus, const std::string& name) {
    std::map<std::string, std::string> found;
    if (gpus.snapshot() == nullptr) return found;
    const Layout& layout = *gpus.snapshot()->layout;
    for (const FamilyLayout& family : FamiliesNamed(layout, name)) {
      for (const SeriesLayout& series : family.series) {
        for (const auto& [label, value] : series.labels) {
          if (label == "gpu") found[std::string(value)] = layout.identities[series.identity].labels.front().second;
        }
      }
    }
    return found;
  }

  template <class Condition>
  static void LookUntil(GpuWatch& gpus, const std::vector<Process>& processes, Condition there) {
    for (gpus.Look(processes); !there(); gpus.Look(processes)) std::this_thread::sleep_for(milliseconds(2));
  }

  const TemporaryDirectory folder_;
  ProcReader proc_;
  int sent_ = 0;
};

constexpr milliseconds kMinute(60'000);
using InstanceMap = std::map<std::string, std::string>;

TEST_F(GpuWatchTest, WithoutALibraryThereIsNothing) {
  GpuWatch::Options options = Options();
  options.find_library = [] { return ""; };
  GpuWatch gpus(options);
  gpus.Use(true, kMinute);
  gpus.Look(Rank(3));
  EXPECT_EQ(gpus.snapshot(), nullptr);
}

TEST_F(GpuWatchTest, AnErrorIsOfTheRankThatItHasEnded) {
  const CapturedLog log;
  GpuWatch gpus(Options());
  gpus.Use(true, kMinute);
  Send("sample");
  LookUntil(gpus, Rank(3), [&] { return Instances(gpus, "persia_gpu_up") == InstanceMap{{"0", "rep_3"}, {"1", "no_rank"}}; });
  // Looks that find the rank dead may come before the error is known.
  gpus.Look({});
  gpus.Look({});
  Send("early");
  LookUntil(gpus, {}, [&] { return Instances(gpus, "persia_gpu_xid_errors_total") == InstanceMap{{"0", "rep_3"}}; });
  std::vector<JobEvent> events = gpus.TakeEvents();
  ASSERT_EQ(events.size(), 1);
  EXPECT_EQ(events[0].name, "gpu_xid");
  EXPECT_EQ(events[0].pid, static_cast<uint32_t>(getpid()));
  EXPECT_THAT(log.Warnings(), ElementsAre(HasSubstr("GPU 0 (GPU-a, trainer rep_3): XID 31")));
}

TEST_F(GpuWatchTest, AnErrorLongAfterARankIsNotItsOwn) {
  GpuWatch gpus(Options());
  gpus.Use(true, kMinute);
  Send("sample");
  LookUntil(gpus, Rank(3), [&] { return Instances(gpus, "persia_gpu_up")["0"] == "rep_3"; });
  gpus.Look({});
  gpus.Look({});
  Send("late");
  LookUntil(gpus, {}, [&] { return Instances(gpus, "persia_gpu_xid_errors_total") == InstanceMap{{"0", "no_rank"}}; });
}

TEST_F(GpuWatchTest, AnErrorBetweenTwoRanksIsOfNone) {
  GpuWatch gpus(Options());
  gpus.Use(true, kMinute);
  Send("sample");
  int rank = 3;
  LookUntil(gpus, Rank(3), [&] { return Instances(gpus, "persia_gpu_up")["0"] == "rep_3"; });
  Send("late");
  // Another rank at each Look.
  while (Instances(gpus, "persia_gpu_xid_errors_total").empty()) {
    gpus.Look(Rank(++rank));
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_EQ(Instances(gpus, "persia_gpu_xid_errors_total")["0"], "no_rank");
}

TEST_F(GpuWatchTest, ALostDeviceIsReportedOnceOnItsRank) {
  const CapturedLog log;
  GpuWatch gpus(Options());
  gpus.Use(true, kMinute);
  Send("sample");
  LookUntil(gpus, Rank(3), [&] { return Instances(gpus, "persia_gpu_up")["0"] == "rep_3"; });
  Send("lost");
  std::vector<JobEvent> events;
  LookUntil(gpus, Rank(3), [&] { return !(events = gpus.TakeEvents()).empty(); });
  EXPECT_EQ(events[0].name, "gpu_lost");
  EXPECT_EQ(events[0].identity, Rank(3)[0].identity);
  gpus.Look(Rank(3));
  EXPECT_THAT(gpus.TakeEvents(), IsEmpty());
  EXPECT_EQ(Instances(gpus, "persia_gpu_up")["0"], "rep_3");
}

TEST_F(GpuWatchTest, OldValuesAreNotShown) {
  auto now = std::chrono::steady_clock::now();
  GpuWatch::Options options = Options();
  options.now = [&] { return now; };
  GpuWatch gpus(options);
  gpus.Use(true, kMinute);
  Send("sample");
  const auto shown = [&] {
    if (gpus.snapshot() == nullptr) return size_t{0};
    size_t values = 0;
    for (const double value : gpus.snapshot()->values) values += IsAbsent(value) ? 0 : 1;
    return values;
  };
  // Restarts and up of the reader, info and up of two devices.
  LookUntil(gpus, Rank(3), [&] { return shown() == 6; });
  now = std::chrono::steady_clock::now() + 2 * kMinute + std::chrono::seconds(2);
  gpus.Look(Rank(3));
  EXPECT_EQ(shown(), 4);
}

// As if a call of the driver hung in the kernel.
TEST_F(GpuWatchTest, AfterAChangeAReaderStartsOnceTheProcessOfTheFormerOneIsReaped) {
  struct Kernel {
    std::atomic<bool> holds = true;
    std::atomic<int> reaped = 0;
  };
  const auto kernel = std::make_shared<Kernel>();
  int readers = 0;
  GpuWatch::Options options = Options();
  options.reader = [&, make = options.reader](const std::string& library, milliseconds interval) {
    ++readers;
    GpuReader::Options reader = make(library, interval);
    reader.reap = [kernel](pid_t process, int* status) {
      if (kernel->holds) return 0;
      const pid_t ended = waitpid(process, status, WNOHANG);
      if (ended > 0) ++kernel->reaped;
      return ended;
    };
    return reader;
  };
  GpuWatch gpus(options);
  gpus.Use(true, kMinute);
  Send("sample");
  LookUntil(gpus, Rank(3), [&] { return Instances(gpus, "persia_gpu_up").size() == 2; });
  gpus.Use(true, 2 * kMinute);
  gpus.Use(false, kMinute);
  gpus.Use(true, 2 * kMinute);
  gpus.Look(Rank(3));
  EXPECT_EQ(readers, 1) << "never two processes";
  kernel->holds = false;
  LookUntil(gpus, Rank(3), [&] { return readers == 2; });
  EXPECT_EQ(kernel->reaped, 1);
}

TEST_F(GpuWatchTest, OffEndsIt) {
  GpuWatch gpus(Options());
  gpus.Use(true, kMinute);
  Send("sample");
  LookUntil(gpus, Rank(3), [&] { return Instances(gpus, "persia_gpu_up").size() == 2; });
  gpus.Use(false, kMinute);
  gpus.Look(Rank(3));
  EXPECT_EQ(gpus.snapshot(), nullptr);
}

}  // namespace
}  // namespace persia::agent
