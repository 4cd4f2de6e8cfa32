#include "persia/metrics/phase.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "persia/metrics/read.h"
#include "persia/metrics/testing.h"
#include "segment_format.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

constexpr milliseconds kPause(20);

double SecondsIn(std::string_view phase) { return ReadValue("persia_phase", "seconds_total", {{"phase", phase}}).value_or(-1); }
double VisitsOf(std::string_view phase) {
  return ReadValue("persia_phase", "duration_seconds", {{"phase", phase}}).value_or(-1);
}

class Stopwatch {
 public:
  double Seconds() const { return std::chrono::duration<double>(steady_clock::now() - began_).count(); }

 private:
  steady_clock::time_point began_ = steady_clock::now();
};

// Each in a process of its own, since a process has one track.
class PhaseTest : public WorkerTest {
 protected:
  void Check(const std::function<void()>& body) {
    const Outcome outcome = RunBareWorker(body);
    EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
    output_ = outcome.error_output;
  }
  std::string output_;
};

TEST_F(PhaseTest, EachMomentBelongsToOnePhase) {
  Check([] {
    const Phase backward("backward");
    const Phase sync("sync");
    const Stopwatch all;
    std::optional<Stopwatch> since;
    {
      const InPhase outer(backward);
      since.emplace();
      std::this_thread::sleep_for(kPause);
      {
        const InPhase inner(sync);
        std::this_thread::sleep_for(3 * kPause);
        EXPECT_GE(sync.Value(), 0.06);  // while it runs
      }
      std::this_thread::sleep_for(kPause);
    }
    std::this_thread::sleep_for(kPause);
    EXPECT_THAT(SecondsIn("sync"), AllOf(Ge(0.06), Le(all.Seconds())));
    EXPECT_THAT(SecondsIn("backward"), AllOf(Ge(0.04), Le(all.Seconds() - 0.06)));
    EXPECT_GE(SecondsIn("other"), 0.02);
    const double least = since->Seconds();
    const double in_all = SecondsIn("sync") + SecondsIn("backward") + SecondsIn("other");
    EXPECT_THAT(in_all, AllOf(Ge(least), Le(all.Seconds())));
    EXPECT_EQ(VisitsOf("sync"), 1);
    EXPECT_EQ(VisitsOf("backward"), 1);
    const Snapshot snapshot = ReadSnapshot();
    const SeriesSnapshot* durations = snapshot.Find("persia_phase", "duration_seconds", {{"phase", "backward"}});
    EXPECT_NEAR(durations->sum, backward.Value(), 1e-6);
  });
}

TEST_F(PhaseTest, APhaseInsideItself) {
  Check([] {
    const Phase forward("forward");
    const Stopwatch all;
    {
      const InPhase outer(forward);
      const InPhase inner(forward);
      std::this_thread::sleep_for(kPause);
    }
    const double spent = forward.Value();
    EXPECT_THAT(spent, AllOf(Ge(0.02), Le(all.Seconds())));
    std::this_thread::sleep_for(kPause);
    EXPECT_EQ(forward.Value(), spent);
    EXPECT_EQ(VisitsOf("forward"), 2);
  });
}

// Coroutines take turns: the phase that was entered last is not the first to be left.
TEST_F(PhaseTest, PhasesAreLeftInAnyOrder) {
  Check([] {
    const Phase a("a");
    const Phase b("b");
    a.Enter();
    b.Enter();
    a.Leave();
    std::this_thread::sleep_for(kPause);
    const double before = a.Value();
    EXPECT_GE(b.Value(), 0.02);
    b.Leave();
    EXPECT_EQ(a.Value(), before);
    EXPECT_EQ(VisitsOf("a"), 1);
    EXPECT_EQ(VisitsOf("b"), 1);
    a.Leave();  // again, and without effect
    EXPECT_EQ(VisitsOf("a"), 1);
  });
}

TEST_F(PhaseTest, OneThreadAtATimeHasPhases) {
  Check([] {
    const Phase data("data");
    const Phase sync("sync");
    {
      const InPhase in(data);
      std::thread([&] { const InPhase ignored(sync); }).join();
      std::thread([&] { const InPhase ignored(sync); }).join();
    }
    EXPECT_EQ(VisitsOf("sync"), 0);
    EXPECT_EQ(SecondsIn("sync"), 0);
    std::thread([&] {
      const InPhase in(sync);
      std::this_thread::sleep_for(kPause);
    }).join();
    EXPECT_EQ(VisitsOf("sync"), 1);
    EXPECT_GE(SecondsIn("sync"), 0.02);
  });
  const size_t at = output_.find("two threads are in phases at a time");
  EXPECT_NE(at, std::string::npos) << output_;
  EXPECT_EQ(output_.find("two threads", at + 1), std::string::npos) << output_;
}

TEST_F(PhaseTest, AThreadThatEndsLeavesItsPhases) {
  Check([] {
    const Phase data("data");
    std::thread([&] { data.Enter(); }).join();
    const double spent = data.Value();
    std::this_thread::sleep_for(kPause);
    EXPECT_EQ(data.Value(), spent);
    const InPhase in(data);
    std::this_thread::sleep_for(kPause);
    EXPECT_GE(data.Value(), spent + 0.02);
  });
}

TEST_F(PhaseTest, SixtyFourPhasesMayBeEnteredInEachOther) {
  Check([] {
    const Phase outer("outer");
    const Phase inner("inner");
    for (int i = 0; i < 64; ++i) outer.Enter();
    inner.Enter();
    EXPECT_EQ(SecondsIn("inner"), 0);
    inner.Leave();
    EXPECT_EQ(VisitsOf("inner"), 0);
    for (int i = 0; i < 64; ++i) outer.Leave();
    EXPECT_EQ(VisitsOf("outer"), 64);
    const double spent = outer.Value();
    std::this_thread::sleep_for(kPause);
    EXPECT_EQ(outer.Value(), spent);
  });
}

// Coroutines that take turns, more than have space, leave in another order than they entered.
TEST_F(PhaseTest, ManyCoroutinesLeaveNoPhaseBehind) {
  Check([] {
    for (const size_t kinds : {2, 30}) {
      std::vector<Phase> phases;
      for (size_t i = 0; i < kinds; ++i) phases.emplace_back("phase " + std::to_string(i));
      const auto spent = [&] {
        double sum = 0;
        for (const Phase& phase : phases) sum += phase.Value();
        return sum;
      };
      for (int i = 0; i < 100; ++i) {
        for (const Phase& phase : phases) phase.Enter();
      }
      for (const Phase& phase : phases) {
        for (int i = 0; i < 100; ++i) phase.Leave();
      }
      const double before = spent();
      std::this_thread::sleep_for(kPause);
      EXPECT_EQ(spent(), before) << kinds;
      std::thread([&] {
        const InPhase in(phases[0]);
        std::this_thread::sleep_for(kPause);
      }).join();
      EXPECT_GE(spent(), before + 0.02) << kinds << ": another thread may have the phases";
    }
  });
  EXPECT_EQ(output_, "");
}

TEST_F(PhaseTest, AForkedChildIsInNoPhase) {
  Check([] {
    const Phase data("data");
    const InPhase in(data);
    std::this_thread::sleep_for(kPause);
    SetStep(5);
    const pid_t child = fork();
    if (child == 0) {
      SetStep(9);
      if (ReadValue("persia_phase", "first_step") != 9) _exit(2);
      const bool none = SecondsIn("data") == 0;
      data.Leave();
      const bool nothing_left = VisitsOf("data") == 0;
      {
        const InPhase again(data);
        std::this_thread::sleep_for(kPause);
      }
      _exit(none && nothing_left && data.Value() >= 0.02 && data.Value() < 10 && VisitsOf("data") == 1 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_GE(data.Value(), 0.02);
  });
}

TEST_F(PhaseTest, AScopeOfATestHasItsOwn) {
  Check([] {
    const Phase data("data");
    {
      const InPhase in(data);
      std::this_thread::sleep_for(kPause);
    }
    const double before = data.Value();
    {
      const metrics::testing::Scope scope;
      EXPECT_EQ(data.Value(), 0);
      const InPhase in(data);
      std::this_thread::sleep_for(kPause);
      EXPECT_GE(data.Value(), 0.02);
      EXPECT_LT(data.Value(), before + 0.02);
    }
    EXPECT_GE(data.Value(), before + 0.02);
    EXPECT_EQ(VisitsOf("data"), 2);
  });
}

TEST_F(PhaseTest, TheStepIsAGauge) {
  Check([] {
    SetStep(812);
    EXPECT_EQ(ReadValue("persia_phase", "step"), 812);
    SetStep(3);
    EXPECT_EQ(ReadValue("persia_phase", "step"), 3);
    EXPECT_EQ(ReadValue("persia_phase", "first_step"), 812);
  });
}

TEST(ClockTest, AWordTellsTheTimeThatRan) {
  using namespace segment;
  constexpr uint64_t kNow = 1'000'000'007;
  uint64_t word = 0;
  EXPECT_EQ(ClockNs(word, kNow), 0U);
  word = StartedClock(word, kNow);
  EXPECT_TRUE(ClockRuns(word));
  EXPECT_EQ(ClockNs(word, kNow), 0U);
  EXPECT_EQ(ClockNs(word, kNow + 5), 5U);
  EXPECT_EQ(ClockNs(word, kNow - 5), 0U);  // read before it started
  EXPECT_EQ(StartedClock(word, kNow + 3), word);
  word = StoppedClock(word, kNow + 7);
  EXPECT_FALSE(ClockRuns(word));
  EXPECT_EQ(word, 14U);
  EXPECT_EQ(StoppedClock(word, kNow + 9), word);
  EXPECT_EQ(ClockNs(word, 0), 7U);
  word = StartedClock(word, 3);  // a clock of another boot, which is earlier than what ran
  EXPECT_EQ(ClockNs(word, 10), 14U);
  EXPECT_EQ(ClockNs(StoppedClock(word, 10), 0), 14U);
}

}  // namespace
}  // namespace persia::metrics::tests
