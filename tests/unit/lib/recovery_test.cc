// A metric that cannot be exported now is exported later, with all counts of the meantime; the library counts and logs the
// reason of each delay.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "persia/metrics/metrics.h"
#include "segment_format.h"
#include "small_filesystem.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

using segment::Drop;

class RecoveryTest : public WorkerTest {
 protected:
  static uint64_t DroppedFor(const SegmentView& segment, Drop why) { return segment.dropped.at(static_cast<size_t>(why)); }

  // The segment, read without the limit on open files that a test may have set.
  SegmentView Look() {
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    SetLimit(RLIMIT_NOFILE, before.rlim_max);
    SegmentView view = OnlySegment();
    SetLimit(RLIMIT_NOFILE, before.rlim_cur);
    return view;
  }

  // Makes series until one is refused by the segment's file, for the reason `why`. Their number.
  int MakeSeriesUntil(Drop why) {
    Family<Counter> family("g", "filling");
    int made = 0;
    while (DroppedFor(Look(), why) == 0) {
      for (int i = 0; i < 500; ++i, ++made) {
        family.With({{"i", std::to_string(made)}}).Increment();
      }
    }
    return made;
  }

  // Checks each instrument during and after a shortage while exporting. `begin` causes the shortage and `end` ends it.
  template <class Begin, class End>
  void GoThroughAShortage(Drop why, const Begin& begin, const End& end) {
    Counter("g", "old").Increment();
    InAnotherThread([] {});  // the first use of a type under UndefinedBehaviorSanitizer needs a descriptor
    begin();
    const int made = MakeSeriesUntil(why);
    Counter counter("g", "counter");
    Gauge gauge("g", "gauge");
    Histogram histogram("g", "histogram", LinearBounds(0, 1, 3));
    Stream stream("g", "stream");
    counter.Increment(41);
    counter.Increment(0.5);
    gauge.Set(5);
    gauge.Add(2);
    histogram.Observe(1);
    stream.Add(3);
    stream.Add(-1);
    events::Record("g", "event");
    InAnotherThread([&] { counter.Increment(); });
    ASSERT_FALSE(Look().series.contains("g/counter"));
    ASSERT_TRUE(Look().series.contains("g/old"));
    end();
    uint64_t more = 0;
    while (!Look().series.contains("g/counter")) {
      counter.Increment();  // and nothing else: no new series, no new thread
      ++more;
    }
    counter.Increment();
    InAnotherThread([&] { counter.Increment(); });
    gauge.Add(1);
    const auto segment = Look();
    ASSERT_EQ(segment.series.at("g/counter").whole, 44 + more);
    ASSERT_EQ(segment.series.at("g/counter").fraction, 0.5);
    ASSERT_EQ(segment.series.at("g/gauge").value, 8);
    ASSERT_EQ(segment.series.at("g/histogram").Count(), 1U);
    ASSERT_EQ(segment.series.at("g/histogram").fraction, 1);
    ASSERT_EQ(segment.series.at("g/stream").value, -1);
    ASSERT_EQ(segment.series.at("g/stream").fraction, 3);
    ASSERT_EQ(segment.series.at("g/stream").negative, -1);
    ASSERT_EQ(segment.series.at("g/event").whole, 1U);
    for (int i = 0; i < made; ++i) {
      ASSERT_EQ(segment.series.at("g/filling{i=\"" + std::to_string(i) + "\"}").whole, 1U);
    }
  }

  static void InAnotherThread(const std::function<void()>& work) {
    std::thread([&work] { work(); }).join();
  }

  static void SetLimit(__rlimit_resource which, rlim_t limit) {
    rlimit now{};
    getrlimit(which, &now);
    now.rlim_cur = limit;
    ASSERT_EQ(setrlimit(which, &now), 0);
  }

  static void ExpectOneLine(const Outcome& outcome, const char* text) {
    EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
    EXPECT_EQ(outcome.LinesOfErrorOutput(), 1) << outcome.error_output;
    EXPECT_NE(outcome.error_output.find(text), std::string::npos) << outcome.error_output;
  }
};

TEST_F(RecoveryTest, AFullFilesystem) {
  const auto outcome = RunWorker([&] {
    MountSmallFilesystem(directory(), "size=4m,mode=0700");
    GoThroughAShortage(
        Drop::kFilesystemFull, [&] { FillUp(directory()); }, [&] { std::filesystem::remove(directory() + "/filler"); });
  });
  ExpectOneLine(outcome, "free some space");
}

TEST_F(RecoveryTest, ALimitOnOpenFiles) {
  const auto outcome = RunWorker([&] {
    GoThroughAShortage(
        Drop::kDescriptorLimit, [] { SetLimit(RLIMIT_NOFILE, 0); }, [] { SetLimit(RLIMIT_NOFILE, 256); });
  });
  ExpectOneLine(outcome, "limit on open files");
}

TEST_F(RecoveryTest, ALimitOnFileSizes) {
  const auto outcome = RunWorker([&] {
    GoThroughAShortage(
        Drop::kFileSizeLimit, [] { SetLimit(RLIMIT_FSIZE, (4 << 20) + (512 << 10)); },
        [] { SetLimit(RLIMIT_FSIZE, RLIM_INFINITY); });
  });
  ExpectOneLine(outcome, "ulimit -f");
}

TEST_F(RecoveryTest, AFileThatMayNotBeOpenedAnyMore) {
  const auto outcome = RunWorker([&] {
    const std::string path = Init().detail;
    GoThroughAShortage(
        Drop::kFileInaccessible, [&] { rename(path.c_str(), (directory() + "/elsewhere.seg").c_str()); },
        [&] { rename((directory() + "/elsewhere.seg").c_str(), path.c_str()); });
  });
  ExpectOneLine(outcome, "deleted or replaced");
}

// At the process's start: nothing is exported until it is possible, and then the first use of any metric does it.
template <class End>
void ExpectAFirstExportLater(const std::string& directory, const End& end) {
  Counter counter("g", "counter");
  Gauge gauge("g", "gauge");
  Histogram histogram("g", "histogram", LinearBounds(0, 1, 3));
  counter.Increment(41);
  std::thread([&] { counter.Increment(0.5); }).join();
  gauge.Set(7);
  histogram.Observe(1);
  events::Record("g", "event");
  ASSERT_TRUE(SegmentsIn(directory).empty());
  end();
  uint64_t more = 0;
  while (SegmentsIn(directory).empty()) {
    counter.Increment();
    ++more;
  }
  const auto segment = ReadSegment(SegmentsIn(directory).at(0));
  ASSERT_EQ(segment.series.at("g/counter").whole, 41 + more);
  ASSERT_EQ(segment.series.at("g/counter").fraction, 0.5);
  ASSERT_EQ(segment.series.at("g/gauge").value, 7);
  ASSERT_EQ(segment.series.at("g/histogram").Count(), 1U);
  ASSERT_EQ(segment.series.at("g/event").whole, 1U);
  ASSERT_EQ(segment.events.size(), 1U);
}

TEST_F(RecoveryTest, AFirstExportToAFullFilesystem) {
  const auto outcome = RunWorker([&] {
    MountSmallFilesystem(directory(), "size=2m,mode=0700");
    FillUp(directory());
    ExpectAFirstExportLater(directory(), [&] { std::filesystem::remove(directory() + "/filler"); });
  });
  ExpectOneLine(outcome, "no space for metrics");
}

TEST_F(RecoveryTest, AFirstExportAboveTheLimitOnFileSizes) {
  const auto outcome = RunWorker([&] {
    SetLimit(RLIMIT_FSIZE, 1 << 20);  // ulimit -f 1024
    ExpectAFirstExportLater(directory(), [&] { SetLimit(RLIMIT_FSIZE, RLIM_INFINITY); });
  });
  ExpectOneLine(outcome, "ulimit -f");
}

// A file without a name gets one by /proc, or by a capability.
TEST_F(RecoveryTest, AFirstExportWithoutProc) {
  const auto outcome = RunWorker([&] {
    MountSmallFilesystem("/proc", "size=64k");
    Counter counter("g", "counter");
    counter.Increment();
    if (SegmentsIn(directory()).empty()) {
      umount("/proc");
      while (SegmentsIn(directory()).empty()) {
        counter.Increment(0.5);
      }
    }
    Counter("g", "later").Increment();
    ASSERT_EQ(OnlySegment().series.at("g/counter").whole, 1U);
    ASSERT_EQ(OnlySegment().series.at("g/later").whole, 1U);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
}

TEST_F(RecoveryTest, AFirstExportByInitAfterOtherMetrics) {
  const auto outcome = RunBareWorker([&] {
    Counter before("g", "before");
    before.Increment(3);
    std::thread([&] { before.Increment(0.5); }).join();
    chmod(directory().c_str(), 0777);
    ASSERT_FALSE(Init({.metrics_dir = directory()}).exporting);
    before.Increment();
    ExpectAFirstExportLater(directory(), [&] { chmod(directory().c_str(), 0700); });
    before.Increment();
    ASSERT_EQ(OnlySegment().series.at("g/before").whole, 5U);
    ASSERT_EQ(OnlySegment().series.at("g/before").fraction, 0.5);
  });
  ExpectOneLine(outcome, "mode 0777");
}

// The values of a metric that waits move to the file while all threads add to them.
TEST_F(RecoveryTest, LosesNothingWhileAllThreadsCount) {
  constexpr int kThreads = 4;
  const auto outcome = RunWorker([&] {
    chmod(directory().c_str(), 0777);
    Counter counter("g", "counter");
    Histogram histogram("g", "histogram", LinearBounds(0, 1, 3));
    Gauge gauge("g", "gauge");
    gauge.Set(100);
    std::atomic<bool> stop = false;
    std::atomic<uint64_t> counted = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (uint64_t n = 0; !stop || n % 1000 != 0; ++n) {
          counter.Increment();
          counter.Increment(0.5);
          histogram.Observe(1);
          gauge.Add(1);
          if (n % 1000 == 0) {
            counted += 1000;
          }
        }
      });
    }
    chmod(directory().c_str(), 0700);
    while (SegmentsIn(directory()).empty()) {
      std::this_thread::yield();
    }
    stop = true;
    for (auto& thread : threads) {
      thread.join();
    }
    const auto segment = OnlySegment();
    ASSERT_EQ(segment.series.at("g/counter").whole, counted);
    ASSERT_EQ(segment.series.at("g/counter").fraction, static_cast<double>(counted) / 2);
    ASSERT_EQ(segment.series.at("g/histogram").Count(), counted);
    ASSERT_EQ(segment.series.at("g/histogram").fraction, static_cast<double>(counted));
    ASSERT_EQ(segment.series.at("g/gauge").value, 100 + static_cast<double>(counted));
  });
  ExpectOneLine(outcome, "mode 0777");
}

TEST_F(RecoveryTest, AForkedChildRecoversOnItsOwn) {
  const auto outcome = RunWorker([&] {
    chmod(directory().c_str(), 0777);
    Counter counter("g", "counter");
    Gauge gauge("g", "gauge");
    counter.Increment(100);
    gauge.Set(1);
    const pid_t child = fork();
    if (child == 0) {
      counter.Increment();
      chmod(directory().c_str(), 0700);
      while (SegmentsIn(directory()).empty()) {
        counter.Increment(2);
      }
      const auto segment = OnlySegment();
      _exit(segment.series.at("g/counter").whole % 2 == 1 && !segment.series.at("g/gauge").set ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
}

// Else each refusal of the parent would count once for each child.
TEST_F(RecoveryTest, AForkedChildDoesNotReportItsParentsRefusals) {
  const auto outcome = RunWorker([&] {
    alarm(60);
    chmod(directory().c_str(), 0777);
    for (int i = 0; i < 3; ++i) Counter("g", "").Increment();
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      Counter("g", "").Increment();
      chmod(directory().c_str(), 0700);
      while (SegmentsIn(directory()).empty()) Counter("g", "good").Increment();
      _exit(DroppedFor(OnlySegment(), Drop::kBadName) == 1 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
}

// As Docker's /dev/shm, of which data loaders hold 50 MiB. A quarter of the space that is free at the start stays free.
TEST_F(RecoveryTest, ASmallSharedMemoryThatIsMostlyTaken) {
  const auto outcome = RunWorker([&] {
    MountSmallFilesystem(directory(), "size=64m,mode=0700");
    FillUpTo(directory(), 14 << 20);
    Family<Counter> family("g", "c");
    for (int i = 0; i < 10'000; ++i) {
      family.With({{"i", std::to_string(i)}}).Increment();
    }
    ASSERT_EQ(OnlySegment().series.size(), 10'000U);
    ASSERT_EQ(DroppedFor(OnlySegment(), Drop::kFilesystemFull), 0U);
    FillUpTo(directory(), (14 << 20) / 4 - 4096);
    for (int i = 10'000; i < 20'000; ++i) {
      family.With({{"i", std::to_string(i)}}).Increment();
    }
    ASSERT_LT(OnlySegment().series.size(), 12'000U);
  });
  ExpectOneLine(outcome, "free some space");
}

// The reserve is 64 MiB at most, so a quarter of a large filesystem is not lost.
TEST_F(RecoveryTest, ALargeFilesystemOfWhichLessThanAQuarterIsFree) {
  const auto outcome = RunWorker([&] {
    MountSmallFilesystem(directory(), "size=400m,mode=0700");
    Counter("g", "old").Increment();
    FillUpTo(directory(), 80 << 20);
    Family<Counter> family("g", "c");
    for (int i = 0; i < 5000; ++i) {
      family.With({{"i", std::to_string(i)}}).Increment();
    }
    ASSERT_EQ(OnlySegment().series.size(), 5001U);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(outcome.error_output, "");
}

// stderr is a pipe that its reader has closed: the line of a refusal must not end the process.
TEST_F(RecoveryTest, ALineToAClosedPipe) {
  const auto outcome = RunWorker([&] {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    Counter("g", "").Increment();
    Counter("g", "c").Increment();
  });
  EXPECT_EQ(outcome.wait_status, 0);
  EXPECT_EQ(OnlySegment().series.at("g/c").whole, 1U);
}

}  // namespace
}  // namespace persia::metrics::tests
