// A fork while other threads use the library for the first time.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "persia/metrics/c.h"
#include "persia/metrics/metrics.h"
#include "sanitizers.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

class ForkTest : public WorkerTest {};

class Handler : public MetricHandler {
 public:
  void Emit(const MetricData& /*data*/) override {}
};

// Each takes locks at every call.
void MakeInC(int i) { persia_metrics_counter_add(persia_metrics_counter("c", std::to_string(i).c_str(), nullptr), 1); }
void MakeInCpp(int i) { Counter("cpp", std::to_string(i)).Increment(); }
void UseAStream(int i) {
  Configure(std::make_shared<Handler>(), std::to_string(i % 10));
  PutMetric("stream", 1, std::to_string(i % 10));
}
void RecordAnEvent(int i) {
  events::Configure(std::make_shared<events::NullEventHandler>(), std::to_string(i % 10));
  events::Record("fork", std::to_string(i));
}
void Emit(int /*i*/) { benchmarkai::Emit({{"a", 1}}); }

using Use = std::pair<const char*, void (*)(int)>;
constexpr Use kUses[] = {
    {"C", &MakeInC}, {"C++", &MakeInCpp}, {"streams", &UseAStream}, {"events", &RecordAnEvent}, {"emit", &Emit}};

// AddressSanitizer's allocator leaves its own mutex locked in a child that is forked while another thread allocates.
#if !PERSIA_TEST_ASAN
TEST_F(ForkTest, NeverDeadlocksWhicheverPartIsUsedFirst) {
  for (const auto& [first_name, first] : kUses) {
    for (const auto& [second_name, second] : kUses) {
      const auto outcome = RunWorker([first = first, second = second] {
        alarm(120);  // a deadlock ends the process
        setenv("BENCHMARK_AI", "segment", 1);
        std::atomic<bool> stop = false;
        std::thread user([&] {
          for (int i = 0; !stop; ++i) {
            first(i % 1000);
            second(i % 1000);
          }
        });
        for (int i = 0; i < 20; ++i) {
          const pid_t child = fork();
          if (child == 0) {
            alarm(60);
            first(1001);
            second(1001);
            _exit(0);
          }
          int status = -1;
          ASSERT_EQ(waitpid(child, &status, 0), child);
          ASSERT_EQ(status, 0);
        }
        stop = true;
        user.join();
      });
      EXPECT_EQ(outcome.wait_status, 0) << first_name << ", " << second_name << ": " << outcome.error_output;
      for (const std::string& path : SegmentsIn(directory())) {
        std::remove(path.c_str());
      }
    }
  }
}
#endif

// So that an agent does not take a data loader for the rank that has forked it.
TEST_F(ForkTest, AChildTellsThatItWasForkedUnlessItHasAnotherIdentity) {
  const auto outcome = RunWorker([] {
    Counter counter("a", "c");
    counter.Increment();
    for (const int replica : {0, 0, 7}) {  // the parent's is 0
      const pid_t child = fork();
      if (child == 0) {
        Options options;
        options.replica = replica;
        Init(options);
        counter.Increment();
        _exit(0);
      }
      int status = -1;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_EQ(status, 0);
    }
  });
  ASSERT_EQ(outcome.wait_status, 0) << outcome.error_output;
  std::multiset<std::pair<int, bool>> segments;
  for (const std::string& path : SegmentsIn(directory())) {
    const SegmentView segment = ReadSegment(path);
    segments.emplace(segment.replica, segment.forked);
  }
  EXPECT_EQ(segments, (std::multiset<std::pair<int, bool>>{{0, false}, {0, true}, {0, true}, {7, false}}));
}

// A handler that is replaced is destroyed by the call that replaces it, and may use the library.
class ConfiguresAtItsEnd : public MetricHandler {
 public:
  ~ConfiguresAtItsEnd() override { Configure(nullptr, "another"); }
  void Emit(const MetricData& /*data*/) override {}
};

TEST_F(ForkTest, AReplacedHandlerMayUseTheLibraryAtItsEnd) {
  const auto outcome = RunWorker([] {
    alarm(60);
    Configure(std::make_shared<ConfiguresAtItsEnd>(), "g");
    Configure(nullptr, "g");
    Configure(std::make_shared<ConfiguresAtItsEnd>());
    Configure(nullptr);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
}

}  // namespace
}  // namespace persia::metrics::tests
