// What a process's record has of its segment, and until when: of one that has ended until its end is in the state.
#include "workers/segment_process.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel/proc_reader.h"
#include "ledger/retired_test.h"
#include "workers/exits.h"

namespace persia::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SegmentProcessTest : public RetiredTest {
 protected:
  // Of each process: its replica, whether it is up, its step, and its exit; and the exits that were told late.
  std::vector<std::string> Listed() {
    source().Read();
    source().Retire();
    std::vector<std::string> listed;
    const auto add = [&](const Process& process) {
      const auto step = process.NumberedStep();
      if (process.segment_id.empty()) return;
      listed.push_back(std::to_string(process.rank.replica) + (process.alive ? " up" : " down") +
                       (step ? " " + std::to_string(static_cast<int>(*step)) : "") +
                       (process.last_exit.empty() ? "" : " " + process.last_exit));
    };
    std::ranges::for_each(source().folded(), add);
    std::ranges::for_each(source().processes(), add);
    for (const LateExit& late : source().lifecycle().late_exits()) listed.push_back("late " + late.exit);
    source().Commit();
    return listed;
  }
};

TEST_F(SegmentProcessTest, AProcessIsListedUntilItsEndIsFolded) {
  auto rank = Start({.role = "worker", .replica = 3});
  rank->segment.Gauge("persia_phase", "step", {}, 7);
  rank->Put();
  EXPECT_THAT(Listed(), ElementsAre("3 up")) << "a count of its own steps";
  rank->segment.Gauge("persia_phase", "first_step", {}, 5);
  rank->Put();
  EXPECT_THAT(Listed(), ElementsAre("3 up 7"));
  rank->EndWith(segment::kExitCode + 3);
  EXPECT_THAT(Listed(), ElementsAre("3 down 7 exit_3"));
  EXPECT_THAT(Listed(), IsEmpty());
}

TEST_F(SegmentProcessTest, WithoutAParentAnEndWithoutAMarkIsUnknown) {
  auto rank = Start();
  rank->Put().Die();
  EXPECT_THAT(Listed(), ElementsAre("0 down unknown"));
}

TEST_F(SegmentProcessTest, AnExitIsToldLateIfTheSupervisorTellsItLate) {
  ExitReasons reaped;
  reaped_ = &reaped;
  StartAgent();
  auto rank = Start();
  rank->segment.header().pid_namespace = ProcReader().PidNamespace("self").value();
  rank->segment.header().pid = 4711;
  rank->segment.header().start_ticks = 9;
  rank->Put().Die();
  EXPECT_THAT(Listed(), ElementsAre("0 down"));
  reaped.Add(4711, 9, SIGKILL);
  EXPECT_THAT(Listed(), ElementsAre("late SIGKILL"));
  EXPECT_THAT(Listed(), IsEmpty());
}

TEST_F(SegmentProcessTest, WhatIsSetBeforeTheSaveIsSavedWithTheFold) {
  auto rank = Start();
  rank->Put();
  Collect();
  rank->End();
  source().Read();
  source().Retire();
  source().ledger().SetGoodput("counted");
  EXPECT_FALSE(source().ledger().GoodputIsSaved());
  source().Commit();
  EXPECT_TRUE(source().ledger().GoodputIsSaved());
  StartAgent();
  Collect();
  EXPECT_EQ(source().ledger().goodput(), "counted");
  EXPECT_EQ(source().stats().retired, 1U);
}

TEST_F(SegmentProcessTest, AProcessHasChangedIfItHasCountedBeforeTheFirstLook) {
  const auto changed = [this] {
    source().Read();
    source().Retire();
    const bool has_changed = source().processes().front().has_changed;
    source().Commit();
    return has_changed;
  };
  auto rank = Start();
  rank->segment.Gauge("train", "rate", {}, 0.1);
  rank->segment.Counter("train", "steps", {}, 0);
  rank->Put();
  EXPECT_FALSE(changed()) << "a gauge may be set once for all";
  StartAgent();
  rank->segment.Counter("train", "batches", {}, 3);
  rank->Put();
  EXPECT_TRUE(changed());
}

TEST_F(SegmentProcessTest, MoreThan64PhasesCountTogether) {
  auto rank = Start();
  const uint32_t clocks = rank->segment.Family(segment::Kind::kClock, "persia_phase", "seconds_total");
  for (int i = 0; i < 70; ++i) {
    const uint32_t clock = rank->segment.Series(clocks, {{"phase", "phase_" + std::to_string(i)}});
    rank->segment.Set(clock, 2 * 1000);  // it has run for 1000 ns
  }
  rank->Put();
  source().Read();
  source().Retire();
  ASSERT_EQ(source().processes().size(), 1U);
  std::chrono::nanoseconds sum{0};
  for (const auto& [phase, time] : source().processes()[0].phases) sum += time;
  EXPECT_EQ(source().processes()[0].phases.size(), 64U);
  EXPECT_EQ(sum.count(), 70'000);
}

}  // namespace
}  // namespace persia::agent::testing
