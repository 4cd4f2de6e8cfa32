// Each end is told once, and what is kept of deaths.
#include "health/death_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "health/deaths.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using TimePoint = ProcessEnd::TimePoint;

Process EndOf(const std::string& exit, uint32_t pid = 1, TimePoint at = TimePoint(seconds(1000))) {
  return {.id = {.pid = pid, .start_ticks = pid},
          .identity = {"dlrm", {{"instance", "rep_" + std::to_string(pid)}, {"role", "trainer"}}},
          .birth_unix_ns = 990'000'000'000,
          .end = ProcessEnd{.exit = exit, .at = at}};
}

class DeathRecorderTest : public ::testing::Test {
 protected:
  std::vector<std::string> Look(const std::vector<Process>& ended) {
    std::vector<std::string> told;
    for (const Process& one : recorder_.Look(ended, moment_)) told.push_back(one.end->exit + (one.end->death ? " died" : ""));
    return told;
  }
  uint64_t Total(DeathCause cause) { return recorder_.memory().totals[static_cast<size_t>(cause)]; }

  DeathRecorder recorder_;
  std::string told_later_;
  DeathRecorder::Moment moment_{.exit_of = [this](const Process&) { return told_later_; }};
};

TEST_F(DeathRecorderTest, DeathsAreCountedByCauseAndCleanExitsAreNot) {
  EXPECT_THAT(Look({EndOf("exit_0"), EndOf("SIGSEGV", 2), EndOf("exit_3", 3)}),
              ElementsAre("exit_0", "SIGSEGV died", "exit_3 died"));
  EXPECT_EQ(Total(DeathCause::kCrash), 1);
  EXPECT_EQ(Total(DeathCause::kExitCode), 1);
  EXPECT_THAT(recorder_.memory().deaths, SizeIs(2));
}

TEST_F(DeathRecorderTest, AnEndWithoutAReasonWaitsForOneCollection) {
  EXPECT_THAT(Look({EndOf("")}), IsEmpty());
  EXPECT_THAT(recorder_.memory().untold, SizeIs(1));
  told_later_ = "SIGKILL";
  EXPECT_THAT(Look({}), ElementsAre("SIGKILL died"));
  EXPECT_THAT(Look({}), IsEmpty()) << "once";
}

TEST_F(DeathRecorderTest, WhatNobodyTellsIsUnknown) {
  EXPECT_THAT(Look({EndOf("")}), IsEmpty());
  EXPECT_THAT(Look({}), ElementsAre("unknown died"));
  moment_.exit_of = nullptr;
  EXPECT_THAT(Look({EndOf("")}), ElementsAre("unknown died")) << "nobody may tell more";
}

TEST_F(DeathRecorderTest, TheLastCollectionDoesNotWait) {
  moment_.is_last = true;
  EXPECT_THAT(Look({EndOf("")}), ElementsAre("unknown died"));
}

// The wall clock may have stepped back since the command began.
TEST_F(DeathRecorderTest, AnEndIsToldWhateverItsTimes) {
  EXPECT_THAT(Look({EndOf("SIGSEGV", 1, TimePoint(seconds(1000))), EndOf("exit_3", 2, TimePoint(seconds(900)))}),
              UnorderedElementsAre("SIGSEGV died", "exit_3 died"));
}

Process EndWithSign(const std::string& exit, uint32_t pid, seconds sign) {
  Process ended = EndOf(exit, pid);
  ended.end->last_sign = TimePoint(sign);
  return ended;
}

TEST_F(DeathRecorderTest, DeathsOfOneCollectionAreInTheOrderOfTheirTimes) {
  EXPECT_THAT(Look({EndOf("SIGTERM", 1), EndOf("unknown", 2), EndOf("exit_9", 3), EndWithSign("exit_1", 4, seconds(998)),
                    EndWithSign("SIGSEGV", 5, seconds(997)), EndWithSign("SIGTERM", 6, seconds(996)),
                    EndWithSign("unknown", 7, seconds(996)), EndOf("exit_0", 8)}),
              ElementsAre("SIGSEGV died", "exit_1 died", "exit_9 died", "exit_0", "unknown died", "unknown died",
                          "SIGTERM died", "SIGTERM died"));
  const std::vector<Process>& deaths = recorder_.memory().deaths;
  ASSERT_THAT(deaths, SizeIs(7));
  EXPECT_EQ(deaths[0].end->at, TimePoint(seconds(997)));
  EXPECT_EQ(deaths[1].end->at, TimePoint(seconds(998)));
  EXPECT_EQ(deaths[2].end->at, TimePoint(seconds(1000))) << "it left no sign";
  EXPECT_EQ(deaths[6].end->at, TimePoint(seconds(1000))) << "its launcher ended it, after its last sign";
}

// The first rank still ends when the second one raises, since it has lost its connection.
TEST_F(DeathRecorderTest, ADeathByAnExceptionIsAtItsTime) {
  const auto raised = [](uint32_t pid, seconds at, seconds sign) {
    Process ended = EndWithSign("exit_1", pid, sign);
    ended.end->exception = UncaughtException{.type = "ValueError", .raised_at = TimePoint(at)};
    return ended;
  };
  Look({raised(1, seconds(990), seconds(996)), raised(2, seconds(993), seconds(995))});
  const std::vector<Process>& deaths = recorder_.memory().deaths;
  ASSERT_THAT(deaths, SizeIs(2));
  EXPECT_EQ(deaths[0].id.pid, 1U);
  EXPECT_EQ(deaths[0].end->at, TimePoint(seconds(990)));
  EXPECT_EQ(deaths[1].end->at, TimePoint(seconds(993)));
}

TEST_F(DeathRecorderTest, ADeathWhoseReasonIsToldLaterHasItsPlace) {
  Look({EndOf("SIGSEGV", 1, TimePoint(seconds(990)))});
  Look({EndWithSign("exit_1", 2, seconds(998)), EndWithSign("", 3, seconds(997))});
  told_later_ = "SIGKILL";
  Look({EndWithSign("exit_2", 4, seconds(1007))});
  std::vector<std::string> exits;
  for (const Process& dead : recorder_.memory().deaths) exits.push_back(dead.end->exit);
  EXPECT_THAT(exits, ElementsAre("SIGSEGV", "SIGKILL", "exit_1", "exit_2"));
}

TEST_F(DeathRecorderTest, ADataLoaderThatTheKernelKilledIsADeath) {
  Process ended = EndOf("unknown");
  ended.ordinal = 1;
  EXPECT_THAT(Look({ended}), ElementsAre("unknown"));
  ended.end->about.killed_for_memory = true;
  EXPECT_THAT(Look({ended}), ElementsAre("unknown died"));
  EXPECT_EQ(Total(DeathCause::kOutOfMemory), 1);
}

TEST_F(DeathRecorderTest, AStateThatIsReadLateAddsItsDeaths) {
  Look({EndOf("SIGSEGV"), EndOf("", 2)});
  const DeathMemory former = recorder_.memory();
  recorder_ = {};
  Look({EndOf("exit_3", 3)});
  recorder_.Restore(former);
  ASSERT_THAT(recorder_.memory().deaths, SizeIs(2));
  EXPECT_EQ(recorder_.memory().deaths[0].end->exit, "SIGSEGV");
  EXPECT_EQ(recorder_.memory().deaths[1].end->exit, "exit_3");
  EXPECT_EQ(Total(DeathCause::kCrash), 1);
  EXPECT_EQ(Total(DeathCause::kExitCode), 1);
  told_later_ = "SIGKILL";
  EXPECT_THAT(Look({}), ElementsAre("SIGKILL died")) << "that waited for its reason";
}

// 200 ranks that their launcher ended must not hide the one that made it do so.
TEST_F(DeathRecorderTest, OfTooManyDeathsThoseByTheLauncherGoFirst) {
  std::vector<Process> ends{EndOf("SIGSEGV")};
  for (uint32_t pid = 2; pid < 200; ++pid) ends.push_back(EndOf("SIGTERM", pid));
  Look(ends);
  EXPECT_THAT(recorder_.memory().deaths, SizeIs(DeathMemory::kMaxDeaths));
  EXPECT_EQ(recorder_.memory().deaths[0].end->exit, "SIGSEGV");
  EXPECT_EQ(Total(DeathCause::kLauncher), 198);
}

DeathMemory Sample() {
  DeathMemory memory;
  Process ended = EndOf("SIGKILL");
  ended.phase = "data";
  ended.step = 812;
  ended.end->last_events = {"12:00:01 my_app checkpoint: bytes=1024"};
  ended.end->exception =
      UncaughtException{.type = "OSError", .message = "full", .where = "a.py:1 in f", .phase = "data", .error_number = 28};
  ended.end->about = {.killed_for_memory = true,
                      .kills_are_known = true,
                      .memory_cgroup = "/job",
                      .memory_limit = 1,
                      .resident = 2,
                      .resident_before = 3,
                      .oom_score = 4,
                      .full_filesystems = {"/dev/shm", "/tmp"},
                      .open_files = 5,
                      .max_open_files = 6,
                      .max_file_bytes = 7,
                      .cpu_seconds = 8,
                      .max_cpu_seconds = 9,
                      .max_address_space = 10,
                      .stderr_lines = {"Traceback", "x"},
                      .stacks = "Thread 0x1\n"};
  memory.deaths.push_back(ended);
  SetDeath(memory.deaths.back(), DeathOf(ended));
  ended.end->exit.clear();
  ended.end->hung_for = seconds(5);
  memory.untold.push_back(ended);
  ended.end->exception->was_caught = true;
  memory.untold.push_back(ended);
  ended.end->exception.reset();
  memory.untold.push_back(ended);
  memory.totals[2] = 7;
  memory.kills = {{"host", 3}, {"/sys/fs/cgroup/job", 1}};
  return memory;
}

TEST(DeathMemoryTest, ItIsReadAsItWasWritten) {
  const DeathMemory memory = Sample();
  EXPECT_EQ(DecodeAs<DeathMemory>(Encode(memory)), memory);
  EXPECT_EQ(DecodeAs<DeathMemory>(Encode(DeathMemory())), DeathMemory());
}

TEST(DeathMemoryTest, MalformedBytesAreRefused) {
  DeathMemory memory = Sample();
  const std::string bytes = Encode(memory);
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(DecodeAs<DeathMemory>(bytes.substr(0, size))) << size;
  EXPECT_FALSE(DecodeAs<DeathMemory>(bytes + "x"));
  memory.deaths.resize(DeathMemory::kMaxDeaths + 1);
  EXPECT_FALSE(DecodeAs<DeathMemory>(Encode(memory))) << "too many deaths";
  for (const double step : {-1.0, 1e300, std::nan("")}) {
    memory = Sample();
    memory.untold[0].step = step;
    EXPECT_FALSE(DecodeAs<DeathMemory>(Encode(memory))) << step;
  }
  memory = Sample();
  memory.deaths[0].end->death->cause = static_cast<DeathCause>(kDeathCauses);
  EXPECT_FALSE(DecodeAs<DeathMemory>(Encode(memory))) << "an unknown cause";
  memory = Sample();
  memory.deaths[0].end->death.reset();
  EXPECT_FALSE(DecodeAs<DeathMemory>(Encode(memory))) << "it has not died";
  memory = Sample();
  memory.untold[0].end.reset();
  EXPECT_FALSE(DecodeAs<DeathMemory>(Encode(memory))) << "it has not ended";
}

}  // namespace
}  // namespace persia::agent
