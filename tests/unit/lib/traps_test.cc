// The traps that a metrics library in shared memory falls into, each as a case. All of them were fallen into once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "persia/metrics/metrics.h"
#include "segment_format.h"
#include "small_filesystem.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

class TrapsTest : public WorkerTest {};

void CloseEverythingButPipes() {
  for (int fd = 3; fd < 1024; ++fd) {
    struct stat info {};
    if (fstat(fd, &info) == 0 && !S_ISFIFO(info.st_mode)) {
      close(fd);
    }
  }
}

// A classic record lock is dropped by any close of the file anywhere in the process: a live worker looked dead.
TEST_F(TrapsTest, ClosingDescriptorsOfTheSegmentKeepsItsLock) {
  Live worker(*this, [&] {
    Counter("g", "c").Increment();
    close(open(SegmentsIn(directory()).at(0).c_str(), O_RDWR));
    CloseEverythingButPipes();
  });
  EXPECT_TRUE(IsLocked(SegmentsIn(directory()).at(0)));
  worker.Finish();
}

// A daemon closes every descriptor it finds; the numbers then belong to other files.
TEST_F(TrapsTest, GrowthAfterAllDescriptorsWereClosedReachesNoOtherFile) {
  const std::string other = directory() + "/other";
  const auto segment = SegmentOf([&] {
    Family<Counter> family("g", "c");
    family.With({{"i", "first"}}).Increment();
    CloseEverythingButPipes();
    std::vector<int> fds;
    for (int i = 0; i < 100; ++i) {
      fds.push_back(open(other.c_str(), O_RDWR | O_CREAT, 0600));
    }
    for (int i = 0; i < 5000; ++i) {
      family.With({{"i", std::to_string(i)}}).Increment();
    }
  });
  EXPECT_EQ(segment.series.size(), 5001U);
  EXPECT_EQ(std::filesystem::file_size(other), 0U);
}

// The name may later belong to another file: growing that one would leave a hole under our own map.
TEST_F(TrapsTest, GrowthOfAReplacedFileIsRefused) {
  const auto outcome = RunWorker([&] {
    Family<Counter> family("g", "c");
    Counter old = family.With({{"i", "first"}});
    const std::string path = SegmentsIn(directory()).at(0);
    std::filesystem::remove(path);
    std::ofstream(path) << "not ours";
    for (int i = 0; i < 5000; ++i) {
      family.With({{"i", std::to_string(i)}}).Increment();
      old.Increment();
    }
    ASSERT_EQ(std::filesystem::file_size(path), 8U);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 1) << outcome.error_output;
}

struct CountsWhenDestroyed {
  Counter counter;
  ~CountsWhenDestroyed() { counter.Increment(); }
};

// Destructors of thread_local objects, and of other libraries' thread keys, run after or before ours, in no order.
TEST_F(TrapsTest, IncrementsFromLateDestructorsArrive) {
  constexpr int kThreads = 50;
  const auto segment = SegmentOf([] {
    static Counter counter("g", "c");
    pthread_key_t before_first_use;
    pthread_key_create(&before_first_use, [](void*) { counter.Increment(); });
    counter.Increment();  // makes the library's own key
    static pthread_key_t again;
    pthread_key_create(&again, [](void* rounds) {
      counter.Increment();
      counter.Increment(0.5);
      // Thread keys whose destructors set them again are visited again, long after the lane is gone.
      if (auto left = reinterpret_cast<uintptr_t>(rounds); left > 1) {
        pthread_setspecific(again, reinterpret_cast<void*>(left - 1));
      }
    });
    for (int i = 0; i < kThreads; ++i) {
      std::thread([&] {
        thread_local CountsWhenDestroyed early{counter};
        pthread_setspecific(before_first_use, &early);
        pthread_setspecific(again, reinterpret_cast<void*>(3));
        counter.Increment();
        thread_local CountsWhenDestroyed late{counter};
        (void)late;
      }).join();
    }
  });
  EXPECT_EQ(segment.series.at("g/c").whole, 1U + kThreads * 7U);
  EXPECT_EQ(segment.series.at("g/c").fraction, kThreads * 1.5);
  EXPECT_EQ(segment.lanes, 2U) << "lanes of ended threads are used again";
}

TEST_F(TrapsTest, ThreadsThatComeAndGoLoseNothingAndTakeNoMoreRoom) {
  const auto segment = SegmentOf([] {
    Counter counter("g", "c");
    Histogram histogram("g", "h", DefaultSecondsBounds());
    for (int round = 0; round < 250; ++round) {
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
          counter.Increment();
          counter.Increment(0.5);
          histogram.Observe(0.5);
        });
      }
      for (auto& thread : threads) {
        thread.join();
      }
    }
  });
  EXPECT_EQ(segment.series.at("g/c").whole, 1000U);
  EXPECT_EQ(segment.series.at("g/c").fraction, 500.0);
  EXPECT_EQ(segment.series.at("g/h").Count(), 1000U);
  EXPECT_EQ(segment.series.at("g/h").fraction, 500.0);
  EXPECT_LE(segment.lanes, 4U);
}

// Runs `body` in a forked child and waits for it.
void InForkedChild(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) {
    throw std::runtime_error("the forked child ended with " + std::to_string(status));
  }
}

TEST_F(TrapsTest, AForkedChildCountsFromZeroInASegmentOfItsOwn) {
  const auto outcome = RunWorker([&] {
    Counter counter("g", "c");
    Gauge gauge("g", "g");
    Histogram histogram("g", "h", LinearBounds(0, 1, 3));
    Init({.role = "parent"});
    counter.Increment(100);
    gauge.Set(1);
    histogram.Observe(1);
    events::Record("e");
    InForkedChild([&] {
      counter.Increment(7);
      histogram.Observe(2);
      histogram.Observe(2);
      events::Record("e");
      Counter("g", "child only").Increment();
      std::thread([&] { counter.Increment(); }).join();
    });
    InForkedChild([] {});  // touches nothing: makes nothing
    counter.Increment();
    histogram.Observe(1);
  });
  ASSERT_EQ(outcome.wait_status, 0) << outcome.error_output;
  const auto paths = SegmentsIn(directory());
  ASSERT_EQ(paths.size(), 2U);
  auto parent = ReadSegment(paths[0]);
  auto child = ReadSegment(paths[1]);
  if (parent.series.contains("g/child only")) {
    std::swap(parent, child);
  }
  EXPECT_EQ(parent.series.at("g/c").whole, 101U);
  EXPECT_EQ(parent.series.at("g/g").value, 1);
  EXPECT_EQ(parent.series.at("g/h").Count(), 2U);
  EXPECT_EQ(parent.series.at("torchelastic/e").whole, 1U);
  EXPECT_EQ(child.series.at("g/c").whole, 8U);
  EXPECT_FALSE(child.series.at("g/g").set);
  EXPECT_EQ(child.series.at("g/h").Count(), 2U);
  EXPECT_EQ(child.series.at("torchelastic/e").whole, 1U);
  EXPECT_EQ(child.events.size(), 1U);
  EXPECT_EQ(child.role, "parent");
  EXPECT_NE(child.pid, parent.pid);
}

// The child holds no copy of the parent's map, so the lock ends with the parent and not with the last child.
TEST_F(TrapsTest, AChildThatOutlivesItsParentDoesNotHoldTheParentsLock) {
  int end_of_child[2];
  ASSERT_EQ(pipe(end_of_child), 0);
  const auto outcome = RunWorker([&] {
    Counter counter("g", "c");
    counter.Increment();
    if (fork() == 0) {
      close(STDERR_FILENO);
      close(end_of_child[1]);
      char byte;
      [[maybe_unused]] const ssize_t n = read(end_of_child[0], &byte, 1);
      counter.Increment(5);
      _exit(0);
    }
  });
  ASSERT_EQ(outcome.wait_status, 0) << outcome.error_output;
  ASSERT_EQ(SegmentsIn(directory()).size(), 1U);
  EXPECT_FALSE(IsLocked(SegmentsIn(directory())[0]));
  EXPECT_EQ(OnlySegment().series.at("g/c").whole, 1U);
  close(end_of_child[0]);
  close(end_of_child[1]);
}

// A fork while other threads hold the registry's mutex: the child must not find it locked for ever, nor half a change.
TEST_F(TrapsTest, ForkWithABusyRegistry) {
  constexpr int kForks = 40;
  constexpr int kSeriesAFork = 100;
  const auto outcome = RunWorker([] {
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    // These threads allocate only while they hold the mutex, so that the case is about it and not about the sanitizers' own
    // allocators, which do not survive a fork.
    std::vector<std::string> values;
    for (int i = 0; i < kForks * kSeriesAFork; ++i) {
      values.push_back(std::to_string(i));
    }
    Family<Counter> families[] = {{"g", "busy0"}, {"g", "busy1"}};
    std::atomic<size_t> allowed = 0;  // each fork occurs during registrations
    for (auto& family : families) {
      threads.emplace_back([&] {
        for (size_t i = 0; !stop; i += i + 1 < allowed ? 1 : 0) {
          family.With({{"i", values[i]}}).Increment();
        }
      });
    }
    for (int i = 0; i < kForks; ++i) {
      allowed += kSeriesAFork;
      InForkedChild([] {
        alarm(60);  // a deadlock ends the child, and so the test
        Counter("g", "child").Increment();
        Family<Counter>("g", "busy0").With({{"i", "child"}}).Increment();
        Counter("g", "child").Increment();
      });
    }
    stop = true;
    for (auto& thread : threads) {
      thread.join();
    }
  });
  ASSERT_EQ(outcome.wait_status, 0) << outcome.error_output;
  int children = 0;
  for (const std::string& path : SegmentsIn(directory())) {
    const auto segment = ReadSegment(path);
    if (segment.series.contains("g/child")) {
      ++children;
      EXPECT_EQ(segment.series.at("g/child").whole, 2U);
      EXPECT_EQ(segment.series.at("g/busy0{i=\"child\"}").whole, 1U);
    }
  }
  EXPECT_EQ(children, kForks);
}

// The first block is already one too many.
TEST_F(TrapsTest, NewbornOnAFullDiskCountsPrivatelyAndSaysWhy) {
  const auto outcome = RunWorker([&] {
    MountSmallFilesystem(directory(), "size=64k,mode=0700");
    FillUp(directory());
    Counter counter("g", "c");
    counter.Increment();
    const InitResult result = Init();
    ASSERT_FALSE(result.exporting);
    ASSERT_NE(result.detail.find("no space for metrics"), std::string::npos) << result.detail;
    counter.Increment();
    ASSERT_TRUE(SegmentsIn(directory()).empty());
    std::filesystem::remove(directory() + "/filler");
    ASSERT_TRUE(Init().exporting);
    ASSERT_EQ(OnlySegment().series.at("g/c").whole, 2U);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 1) << outcome.error_output;
}

// A hole in a full tmpfs is a SIGBUS at its first touch, in a training step.
TEST_F(TrapsTest, ADiskThatFillsUpUnderWayEndsNoProcess) {
  constexpr int kSeries = 20000;
  const auto outcome = RunWorker([&] {
    MountSmallFilesystem(directory(), "size=8m,mode=0700");
    Counter old("g", "old");
    Family<Counter> family("g", "c");
    family.With({{"i", "first"}}).Increment();
    FillUp(directory());
    for (int i = 0; i < kSeries; ++i) {
      family.With({{"i", std::to_string(i)}}).Increment();
      old.Increment();
    }
    events::Record("e");
    std::thread([&] {
      for (int i = 0; i < 1000; ++i) {
        old.Increment();
      }
    }).join();
    const auto full = OnlySegment();
    ASSERT_EQ(full.series.at("g/old").whole, kSeries + 1000U);
    ASSERT_GT(full.dropped.at(static_cast<size_t>(segment::Drop::kFilesystemFull)), 0U);
    ASSERT_LT(full.series.size(), kSeries / 2U);
    std::filesystem::remove(directory() + "/filler");
    while (OnlySegment().series.size() < kSeries + 3U) {  // "old", "first" and the event
      family.With({{"i", std::to_string(kSeries - 1)}}).Increment();
    }
    const auto recovered = OnlySegment();
    for (int i = 0; i < kSeries - 1; ++i) {
      ASSERT_EQ(recovered.series.at("g/c{i=\"" + std::to_string(i) + "\"}").whole, 1U);
    }
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 1) << outcome.error_output;
}

// The last quarter belongs to the job: data loaders share tensors through the same /dev/shm.
TEST_F(TrapsTest, AQuarterOfTheFilesystemStaysFree) {
  const auto outcome = RunWorker([&] {
    MountSmallFilesystem(directory(), "size=2m,mode=0700");
    Family<Counter> family("g", "c");
    for (int i = 0; i < 50000; ++i) {
      family.With({{"i", std::to_string(i)}}).Increment();
    }
    const auto space = std::filesystem::space(directory());
    ASSERT_LT(space.available, space.capacity / 2);
    ASSERT_GE(space.available + (64 << 10), space.capacity / 4);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
}

}  // namespace
}  // namespace persia::metrics::tests
