// How a segment comes to be, grows, and ends: opting in, limits, full disks, directories that will not do.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "job_directory.h"
#include "persia/metrics/internal/process.h"
#include "persia/metrics/metrics.h"
#include "persia/metrics/version.h"
#include "segment_format.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

using segment::Drop;

// The counts of series without space, for either reason.
uint64_t DroppedForSpace(const SegmentView& segment) {
  return segment.dropped.at(static_cast<size_t>(Drop::kSegmentFull)) +
         segment.dropped.at(static_cast<size_t>(Drop::kFilesystemFull));
}

class SegmentTest : public WorkerTest {
 protected:
  void WriteAgentConf(const std::string& text) const { std::ofstream(directory() + "/agent.conf") << text; }
};

TEST_F(SegmentTest, NoFileAppearsWithoutOptingIn) {
  const std::string parent = std::filesystem::path(DefaultMetricsDir(geteuid(), "x")).parent_path();
  const auto outcome = RunBareWorker([&] {
    Counter("g", "c").Increment();
    // Another test's worker may make that directory at any time: check only this worker's files.
    std::ifstream maps("/proc/self/maps");
    const std::string mapped(std::istreambuf_iterator<char>(maps), {});
    if (mapped.empty() || mapped.find(parent + "/") != std::string::npos) std::exit(1);
  });
  EXPECT_EQ(outcome.wait_status, 0);
  EXPECT_EQ(outcome.error_output, "");
}

TEST_F(SegmentTest, SaysWhichLibraryWritesIt) {
  const auto segment = SegmentOf([] { Counter("g", "c").Increment(); });
  EXPECT_EQ(segment.language, "c++");
  EXPECT_EQ(segment.library_version, PROJECT_VERSION);
  EXPECT_STREQ(persia_metrics_version(), PROJECT_VERSION);
  EXPECT_EQ(persia_metrics_version_number(), PERSIA_METRICS_VERSION_NUMBER);
}

TEST_F(SegmentTest, JobNameInTheEnvironmentOptsInToTheDefaultDirectory) {
  const std::string job = "job " + std::to_string(getpid());
  const std::string expected = DefaultMetricsDir(geteuid(), job);
  const auto outcome = RunBareWorker([&] {
    setenv("PERSIA_JOB_NAME", job.c_str(), 1);
    Counter("g", "c").Increment();
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  ASSERT_EQ(SegmentsIn(expected).size(), 1U);
  EXPECT_EQ(ReadSegment(SegmentsIn(expected)[0]).job, job);
  struct stat info {};
  ASSERT_EQ(stat(expected.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
  ASSERT_EQ(stat(SegmentsIn(expected)[0].c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  std::filesystem::remove_all(expected);
}

TEST_F(SegmentTest, WhatWasCountedBeforeInitCounts) {
  const auto outcome = RunBareWorker([&] {
    Counter counter("g", "c");
    Gauge gauge("g", "g");
    counter.Increment(41);
    gauge.Set(5);
    events::Record("before");
    std::thread([&] { counter.Increment(0.5); }).join();
    const InitResult result = Init({.job_name = "j", .role = "trainer", .replica = 3, .metrics_dir = directory()});
    ASSERT_TRUE(result.exporting) << result.detail;
    counter.Increment();
    gauge.Add(1);
    ASSERT_EQ(SegmentsIn(directory()), std::vector<std::string>{result.detail});
  });
  ASSERT_EQ(outcome.wait_status, 0) << outcome.error_output;
  const auto segment = OnlySegment();
  EXPECT_EQ(segment.series.at("g/c").whole, 42U);
  EXPECT_EQ(segment.series.at("g/c").fraction, 0.5);
  EXPECT_EQ(segment.series.at("g/g").value, 6);
  EXPECT_EQ(segment.events.size(), 1U);
  EXPECT_EQ(segment.job, "j");
  EXPECT_EQ(segment.role, "trainer");
  EXPECT_EQ(segment.replica, 3);
}

TEST_F(SegmentTest, ASecondInitRenewsTheIdentityAndAddsNothingIfItIsTheSame) {
  const auto segment = SegmentOf([] {
    Init({.role = "a", .labels = {{"x", "1"}}});
    Init({.role = "b", .replica = 2, .labels = {{"y", "2"}}});
    const auto size = std::filesystem::file_size(Init({.role = "b", .replica = 2, .labels = {{"y", "2"}}}).detail);
    for (int i = 0; i < 10000; ++i) {
      Init({.role = "b", .replica = 2, .labels = {{"y", "2"}}});
    }
    ASSERT_EQ(std::filesystem::file_size(Init({.role = "b", .replica = 2, .labels = {{"y", "2"}}}).detail), size);
  });
  EXPECT_EQ(segment.role, "b");
  EXPECT_EQ(segment.replica, 2);
  EXPECT_EQ(segment.labels, (std::map<std::string, std::string>{{"y", "2"}}));
}

TEST_F(SegmentTest, ASecondInitOfALibraryLeavesTheJobAndTheIdentityAlone) {
  const std::string other = directory() + "/other";
  const auto outcome = RunBareWorker([&] {
    Counter counter("g", "c");
    Init({.job_name = "dlrm", .role = "trainer", .replica = 2, .labels = {{"zone", "a"}}, .metrics_dir = directory()});
    counter.Increment();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(Init().exporting);
      ASSERT_TRUE(Init({.job_name = "another", .metrics_dir = other}).exporting);
    }
    counter.Increment();
  });
  ASSERT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 1) << outcome.error_output;
  EXPECT_NE(outcome.error_output.find("already belong to job \"dlrm\""), std::string::npos) << outcome.error_output;
  EXPECT_FALSE(std::filesystem::exists(other));
  const auto segment = OnlySegment();
  EXPECT_EQ(segment.series.at("g/c").whole, 2U);
  EXPECT_EQ(segment.job, "dlrm");
  EXPECT_EQ(segment.role, "trainer");
  EXPECT_EQ(segment.replica, 2);
  EXPECT_EQ(segment.labels, (std::map<std::string, std::string>{{"zone", "a"}}));
}

// A static handle is made before main, so the environment opens the segment before the program says its job.
TEST_F(SegmentTest, TheFirstInitNamesTheJobOfASegmentThatTheEnvironmentOpened) {
  const auto segment = SegmentOf([] {
    Counter("g", "c").Increment();
    Init({.job_name = "dlrm", .role = "trainer"});
  });
  EXPECT_EQ(segment.job, "dlrm");
  EXPECT_EQ(segment.role, "trainer");
}

TEST_F(SegmentTest, NoReaderSeesHalfAFileOrAnUnlockedOne) {
  for (int round = 0; round < 20; ++round) {
    // A process: a thread might hold the allocator's lock when the worker is forked.
    const pid_t reader = fork();
    if (reader == 0) {
      alarm(100);
      [&]() noexcept {
        while (true) {
          for (const std::string& path : SegmentsIn(directory())) {
            _exit(IsLocked(path) && ReadSegment(path).role == "worker" ? 0 : 1);
          }
        }
      }();
    }
    Live worker(*this, [] { Counter("g", "c").Increment(); });
    int status = -1;
    ASSERT_EQ(waitpid(reader, &status, 0), reader);
    EXPECT_EQ(status, 0);
    worker.Finish();
    std::filesystem::remove(SegmentsIn(directory()).at(0));
  }
}

TEST_F(SegmentTest, TheLockEndsWithTheProcess) {
  Live worker(*this, [] { Counter("g", "c").Increment(); });
  const std::string path = SegmentsIn(directory()).at(0);
  EXPECT_TRUE(IsLocked(path));
  worker.Kill();
  EXPECT_FALSE(IsLocked(path));
  EXPECT_EQ(ReadSegment(path).series.at("g/c").whole, 1U);
}

TEST_F(SegmentTest, GrowsWithItsSeries) {
  const auto segment = SegmentOf([] {
    Family<Counter> family("g", "c");
    for (int i = 0; i < 5000; ++i) {
      family.With({{"i", std::to_string(i)}}).Increment(i);
    }
    for (int i = 0; i < 5000; ++i) {
      family.With({{"i", std::to_string(i)}}).Increment();
    }
  });
  ASSERT_EQ(segment.series.size(), 5000U);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(segment.series.at("g/c{i=\"" + std::to_string(i) + "\"}").whole, static_cast<uint64_t>(i) + 1);
  }
}

TEST_F(SegmentTest, WhatIsPrintedToClosedDescriptorsDoesNotGoIntoIt) {
  constexpr int kSeries = 5000;
  const auto segment = SegmentOf([] {
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(standard);
    std::atomic<bool> done = false;
    std::thread printing([&] {
      while (!done) {
        for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
          syscall(SYS_write, standard, "printed", 7);  // TSan would call a write() to a closed descriptor a race
        }
      }
    });
    for (int i = 0; i < kSeries; ++i) Counter("g", "c" + std::to_string(i)).Increment();
    done = true;
    printing.join();
  });
  EXPECT_EQ(segment.series.size(), size_t{kSeries});
}

TEST_F(SegmentTest, AFullSegmentDropsNewSeriesAndKeepsTheOldOnes) {
  const auto outcome = RunWorker([] {
    setenv("PERSIA_METRICS_SEGMENT_BYTES", "262144", 1);
    Counter old("g", "old");
    Family<Counter> family("g", "c");
    for (int i = 0; i < 20000; ++i) {
      family.With({{"i", std::to_string(i)}}).Increment();
      old.Increment();
    }
    Counter("g", "late").Increment();
    Histogram("g", "late_too", LinearBounds(0, 1, 500)).Observe(1);
  });
  EXPECT_EQ(outcome.wait_status, 0);
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 1) << outcome.error_output;
  EXPECT_NE(outcome.error_output.find("raise PERSIA_METRICS_SEGMENT_BYTES"), std::string::npos);
  const auto segment = OnlySegment();
  EXPECT_EQ(segment.series.at("g/old").whole, 20000U);
  const uint64_t kept = segment.series.size() - 1;
  EXPECT_GT(kept, 100U);
  EXPECT_GE(DroppedForSpace(segment), 20000 - kept);
  EXPECT_LE(std::filesystem::file_size(SegmentsIn(directory()).at(0)), 262144U);
}

TEST_F(SegmentTest, AThreadWithoutRoomForALaneCountsInTheCommonLane) {
  constexpr int kThreads = 64;
  const auto segment = SegmentOf([] {
    setenv("PERSIA_METRICS_SEGMENT_BYTES", "262144", 1);  // about 40 chunks
    Counter counter("g", "c");
    Histogram histogram("g", "h", LinearBounds(0, 1, 10));
    std::barrier all_running(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        all_running.arrive_and_wait();
        for (int n = 0; n < 1000; ++n) {
          counter.Increment();
          counter.Increment(0.5);
          histogram.Observe(3);
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  });
  EXPECT_EQ(segment.series.at("g/c").whole, 1000U * kThreads);
  EXPECT_EQ(segment.series.at("g/c").fraction, 500.0 * kThreads);
  EXPECT_EQ(segment.series.at("g/h").Count(), 1000U * kThreads);
  EXPECT_EQ(segment.series.at("g/h").fraction, 3000.0 * kThreads);
}

TEST_F(SegmentTest, DisabledByTheEnvironmentNoFileAppearsAndHandlesWork) {
  const auto outcome = RunWorker([] {
    setenv("PERSIA_METRICS_ENABLED", "0", 1);
    Counter counter("g", "c");
    Gauge gauge("g", "g");
    Histogram histogram("g", "h", LinearBounds(0, 1, 500));
    for (int i = 0; i < 1000; ++i) {
      counter.Increment();
      counter.Increment(0.5);
      gauge.Set(i);
      gauge.Add(1);
      histogram.Observe(i);
    }
    events::Record("e");
    GetStream("my_app").AddValue("a", 1);
    PutMetric("b", 2);
    const InitResult result = Init({.role = "r"});
    ASSERT_FALSE(result.exporting);
    ASSERT_NE(result.detail.find("PERSIA_METRICS_ENABLED"), std::string::npos);
    ASSERT_FALSE(Exporting());
    counter.Increment();
    EXPECT_EQ(counter.Value(), 0);
    EXPECT_TRUE(ReadSnapshot().metrics.empty());
    EXPECT_EQ(ReadValue("g", "c"), std::nullopt);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(outcome.error_output, "");
  EXPECT_TRUE(SegmentsIn(directory()).empty());
}

TEST_F(SegmentTest, DisabledByTheAgentsWordNoFileAppears) {
  WriteAgentConf("enabled=0\nrun_id=r\n");
  const auto outcome = RunWorker([&] {
    Counter("g", "c").Increment();
    ASSERT_FALSE(Init().exporting);
    ASSERT_NE(Init().detail.find("disabled by the agent"), std::string::npos) << Init().detail;
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_TRUE(SegmentsIn(directory()).empty());
}

TEST_F(SegmentTest, TheEnvironmentWinsOverTheProgram) {
  const auto segment = SegmentOf([] {
    setenv("PERSIA_JOB_NAME", "env job", 1);
    setenv("PERSIA_ROLE", "env role", 1);
    setenv("RANK", "7", 1);
    setenv("REPLICA_INDEX", "5", 1);
    setenv("PERSIA_RUN_ID", "env run", 1);
    setenv("TORCHELASTIC_RESTART_COUNT", "2", 1);
    Init({.job_name = "j", .role = "r", .replica = 1, .labels = {{"zone", "a"}}, .metrics_dir = "/nonexistent/x"});
  });
  EXPECT_EQ(segment.job, "env job");
  EXPECT_EQ(segment.role, "env role");
  EXPECT_EQ(segment.replica, 5);
  EXPECT_EQ(segment.run_id, "env run");
  EXPECT_EQ(segment.restart_count, 2U);
  EXPECT_EQ(segment.labels.at("zone"), "a");
}

TEST_F(SegmentTest, ALineEndBelongsToNoVariable) {
  const auto segment = SegmentOf([] {
    setenv("PERSIA_JOB_NAME", "env job\n", 1);
    setenv("PERSIA_ROLE", "env role\r\n", 1);
    setenv("REPLICA_INDEX", "5\n", 1);
    setenv("PERSIA_RUN_ID", "\n", 1);
    setenv("TORCHELASTIC_RUN_ID", "torch\n", 1);
    Init();
  });
  EXPECT_EQ(segment.job, "env job");
  EXPECT_EQ(segment.role, "env role");
  EXPECT_EQ(segment.replica, 5);
  EXPECT_EQ(segment.run_id, "torch");
}

TEST_F(SegmentTest, TheRankIsThatOfTheFirstSourceThatGivesOne) {
  struct Case {
    std::vector<const char*> variables = {};  // each has the length of its name
    std::optional<int> program = {};
    std::optional<int> process_group = {};
    size_t rank = 0;
  };
  const std::vector<Case> cases = {
      {.rank = 0},
      {.variables = {"SLURM_PROCID"}, .rank = 12},
      {.variables = {"SLURM_PROCID", "MV2_COMM_WORLD_RANK"}, .rank = 19},
      {.variables = {"SLURM_PROCID", "PMI_RANK"}, .rank = 8},
      {.variables = {"PMI_RANK", "PMIX_RANK"}, .rank = 9},
      {.variables = {"PMIX_RANK", "OMPI_COMM_WORLD_RANK"}, .rank = 20},
      {.variables = {"OMPI_COMM_WORLD_RANK", "HOROVOD_RANK"}, .rank = 12},
      {.variables = {"HOROVOD_RANK", "PERSIA_METRICS_RANK_OF_PARENT"}, .rank = 29},
      {.variables = {"PERSIA_METRICS_RANK_OF_PARENT"}, .program = 3, .rank = 3},
      {.variables = {"PERSIA_METRICS_RANK_OF_PARENT", "RANK"}, .rank = 4},
      {.variables = {"PERSIA_METRICS_RANK_OF_PARENT"}, .process_group = 2, .rank = 2},
      {.variables = {"HOROVOD_RANK"}, .program = 3, .rank = 3},
      {.variables = {"HOROVOD_RANK", "RANK"}, .rank = 4},
      {.variables = {"OMPI_COMM_WORLD_RANK"}, .program = 3, .rank = 3},
      {.variables = {"OMPI_COMM_WORLD_RANK", "RANK"}, .program = 3, .rank = 4},
      {.variables = {"OMPI_COMM_WORLD_RANK", "RANK"}, .process_group = 2, .rank = 2},
      {.program = 3, .process_group = 2, .rank = 3},
      {.variables = {"RANK"}, .program = 3, .process_group = 2, .rank = 4},
      {.variables = {"REPLICA_INDEX", "RANK"}, .program = 3, .process_group = 2, .rank = 13},
      {.variables = {"REPLICA_INDEX", "LOCAL_WORLD_SIZE"}, .rank = 13},
      {.variables = {"REPLICA_INDEX", "LOCAL_WORLD_SIZE", "RANK"}, .rank = 4},
  };
  for (const Case& given : cases) {
    for (const bool is_made_before : {true, false}) {
      const auto segment = SegmentOf([&] {
        const auto record = [] { Counter("g", "c").Increment(); };
        if (is_made_before) record();  // at module level: before the program or a launcher's child knows its rank
        for (const char* name : given.variables) setenv(name, std::to_string(std::string_view(name).size()).c_str(), 1);
        if (given.program || is_made_before) Init({.replica = given.program});
        if (given.process_group) internal::SetProcessGroupRank(*given.process_group);
        if (!is_made_before) record();
      });
      EXPECT_EQ(static_cast<size_t>(segment.replica), given.rank)
          << ::testing::PrintToString(given.variables) << (is_made_before ? " before" : "");
      EXPECT_EQ(segment.series.at("g/c").whole, 1U);
      std::filesystem::remove(SegmentsIn(directory()).at(0));
    }
  }
}

TEST_F(SegmentTest, TheRunIsTheAgentsBeforeTorchruns) {
  WriteAgentConf("later_key=1\nenabled=1\nrun_id=agent run\njob=j\n");
  EXPECT_EQ(SegmentOf([] {
              setenv("TORCHELASTIC_RUN_ID", "torch", 1);
              Init();
            }).run_id,
            "agent run");
  std::filesystem::remove(SegmentsIn(directory()).at(0));
  WriteAgentConf("enabled=1\nrun_id=agent run\nended=1\n");
  EXPECT_EQ(SegmentOf([] {
              setenv("TORCHELASTIC_RUN_ID", "torch", 1);
              Init();
            }).run_id,
            "torch");
  std::filesystem::remove(SegmentsIn(directory()).at(0));
  EXPECT_EQ(SegmentOf([] {
              setenv("TORCHELASTIC_RUN_ID", "none", 1);  // torchrun's default, the same for every run
              Init();
            }).run_id,
            "");
}

TEST_F(SegmentTest, TheRoleOfATorchrunIsTheRanksUnlessAnotherIsGiven) {
  const auto role_of = [this](const char* run_id, const char* role_name, const char* own, const std::string& option) {
    const std::string role = SegmentOf([&] {
                               if (run_id != nullptr) setenv("TORCHELASTIC_RUN_ID", run_id, 1);
                               setenv("ROLE_NAME", role_name, 1);
                               setenv("PERSIA_ROLE", own, 1);
                               Init({.role = option});
                             }).role;
    std::filesystem::remove(SegmentsIn(directory()).at(0));
    return role;
  };
  EXPECT_EQ(role_of("none", "trainer", "", ""), "trainer");
  EXPECT_EQ(role_of("none", "default", "", ""), "worker");  // without --role
  EXPECT_EQ(role_of("none", "trainer", "", "option"), "option");
  EXPECT_EQ(role_of("none", "trainer", "own", "option"), "own");
  EXPECT_EQ(role_of(nullptr, "trainer", "", ""), "worker");  // another program's variable
}

TEST_F(SegmentTest, BadValuesInTheEnvironmentAreQuotedAndIgnored) {
  const auto outcome = RunWorker([] {
    setenv("REPLICA_INDEX", "two", 1);
    setenv("PERSIA_METRICS_SEGMENT_BYTES", "-5", 1);
    setenv("PERSIA_METRICS_ENABLED", "maybe", 1);
    Counter("g", "c").Increment();
  });
  EXPECT_EQ(outcome.wait_status, 0);
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 3) << outcome.error_output;
  for (const char* quoted :
       {"REPLICA_INDEX=\"two\"", "PERSIA_METRICS_SEGMENT_BYTES=\"-5\"", "PERSIA_METRICS_ENABLED=\"maybe\""}) {
    EXPECT_NE(outcome.error_output.find(quoted), std::string::npos) << quoted;
  }
  EXPECT_EQ(OnlySegment().series.at("g/c").whole, 1U);
}

TEST_F(SegmentTest, ADirectorySharedWithAGroupGivesFilesToTheGroup) {
  ASSERT_EQ(chmod(directory().c_str(), 02770), 0);
  SegmentOf([] { Counter("g", "c").Increment(); });
  struct stat info {};
  ASSERT_EQ(stat(SegmentsIn(directory())[0].c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0640U) << "the group reads";
}

}  // namespace
}  // namespace persia::metrics::tests
