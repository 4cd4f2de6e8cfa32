// Each end of a process is told once, by whichever agent finds it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernel/proc_reader.h"
#include "ledger/retired_test.h"
#include "workers/last_events.h"

namespace persia::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class EndsTest : public RetiredTest {
 protected:
  // Instance and exit of each end that the last collection found.
  std::vector<std::string> Ends() {
    std::vector<std::string> ends;
    for (const Process& ended : source().Ends())
      ends.push_back(LabelValueOf(ended.identity, "instance") + " " + std::to_string(ended.ordinal) + " " + ended.end->exit);
    return ends;
  }
  std::unique_ptr<Worker> StartRank(int replica) {
    auto process = Start({.role = "worker", .replica = replica});
    process->Put();
    return process;
  }
};

TEST_F(EndsTest, AnEndIsToldOnce) {
  const auto other = StartRank(1);
  StartRank(0)->EndWith(segment::kExitCode + 3);
  Collect();
  EXPECT_THAT(Ends(), ElementsAre("rep_0 0 exit_3"));
  Collect();
  EXPECT_THAT(Ends(), IsEmpty());
  StartAgent();
  Collect();
  EXPECT_THAT(Ends(), IsEmpty()) << "by the next agent";
}

TEST_F(EndsTest, AnEndWhileNoAgentRanIsTold) {
  const auto rank = StartRank(0);
  Collect();
  rank->Die();
  StartAgent();
  Collect();
  EXPECT_THAT(Ends(), ElementsAre("rep_0 0 unknown"));
}

// Killed between the fold and the write of both.
TEST_F(EndsTest, AnEndThatIsNotSavedIsToldByTheNextAgent) {
  StartRank(0)->Die();
  source().Read();
  source().Retire();
  EXPECT_THAT(Ends(), SizeIs(1));
  StartAgent();
  Collect();
  EXPECT_THAT(Ends(), ElementsAre("rep_0 0 unknown"));
}

// A process that replaces its program by exec: the lock of its segment is free, and the process lives.
class ReplacedProgramTest : public EndsTest {
 protected:
  ReplacedProgramTest() : pid_(fork()) {
    while (pid_ == 0) pause();
    started_ = ProcReader().Stat(std::to_string(pid_)).value().start_ticks;
  }
  ~ReplacedProgramTest() override {
    Kill();
    waitpid(pid_, nullptr, 0);
  }
  std::unique_ptr<Worker> StartProgram() {
    auto program = Start({.role = "worker"});
    program->segment.header().pid_namespace = ProcReader().PidNamespace("self").value();
    program->segment.header().pid = static_cast<uint32_t>(pid_);
    program->segment.header().start_ticks = started_;
    program->Put();
    return program;
  }
  // Its parent does not reap it.
  void Kill() const {
    kill(pid_, SIGKILL);
    siginfo_t ended{};
    waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT);
  }

 private:
  const pid_t pid_;
  uint64_t started_ = 0;
};

TEST_F(ReplacedProgramTest, TheEndOfTheProcessIsToldOnce) {
  const auto old = StartProgram();
  Collect();
  old->Die();
  Collect();
  EXPECT_EQ(source().stats().live, 1U) << "until the new program records";
  EXPECT_THAT(Ends(), IsEmpty());
  const auto next = StartProgram();
  Collect();
  EXPECT_EQ(source().stats().live, 1U);
  ASSERT_EQ(source().ended().size(), 1U);
  EXPECT_THAT(source().ended()[0].exits, ElementsAre(::testing::Pair("exec", 1U)));
  EXPECT_THAT(Ends(), IsEmpty());
  Kill();
  next->Die();
  Collect();
  EXPECT_THAT(Ends(), SizeIs(1));
  Collect();
  EXPECT_THAT(Ends(), IsEmpty());
}

TEST_F(ReplacedProgramTest, AllMayHappenBetweenTwoCollections) {
  StartProgram()->Die();
  StartProgram()->Die();
  const auto last = StartProgram();
  Kill();
  last->Die();
  Collect();
  EXPECT_THAT(Ends(), SizeIs(1));
}

TEST_F(ReplacedProgramTest, TheNextAgentTellsNoEndEither) {
  const auto old = StartProgram();
  Collect();
  old->Die();
  const auto next = StartProgram();
  StartAgent();
  Collect();
  EXPECT_THAT(Ends(), IsEmpty());
}

TEST_F(ReplacedProgramTest, TheEndOfANewProgramThatRecordsNothingIsTold) {
  const auto old = StartProgram();
  Collect();
  old->Die();
  Collect();
  EXPECT_THAT(Ends(), IsEmpty());
  Kill();
  Collect();
  EXPECT_THAT(Ends(), SizeIs(1));
}

TEST_F(EndsTest, SeveralEndsOfARankBetweenTwoCollectionsAreTold) {
  for (const uint64_t code : {3, 4}) StartRank(0)->EndWith(segment::kExitCode + code);
  Collect();
  EXPECT_THAT(Ends(), ElementsAre("rep_0 0 exit_3", "rep_0 1 exit_4"));
}

TEST_F(EndsTest, TheSuccessorOfAProcessHasItsNumber) {
  StartRank(0)->Die();
  const auto successor = StartRank(0);
  Collect();
  EXPECT_THAT(Ends(), ElementsAre("rep_0 0 unknown"));
  successor->Die();
  Collect();
  EXPECT_THAT(Ends(), ElementsAre("rep_0 0 unknown"));
}

// Those of an identity that are found in one collection.
class NewProcessesTest : public EndsTest {
 protected:
  // Number, state and restarts of the processes after a collection.
  std::vector<std::string> Listed() {
    Collect();
    std::vector<std::string> listed;
    for (const Process& process : source().processes()) {
      listed.push_back(std::to_string(process.ordinal) + (process.alive ? " up " : " down ") +
                       std::to_string(process.restarts));
    }
    return listed;
  }
  std::unique_ptr<Worker> Fork(uint64_t start_ticks = 0) {
    auto process = Start({.role = "worker"});
    process->segment.Identity({.role = "worker"}, /*forked=*/true);
    process->segment.header().start_ticks = start_ticks;
    process->Put();
    return process;
  }
};

TEST_F(NewProcessesTest, AHelperThatHasEndedIsNotTheFirstOne) {
  const auto program = StartRank(0);
  for (const uint64_t mark : {segment::kExitCode + 0, segment::kExitCode + 3, uint64_t{segment::kNoExit}}) {
    Fork()->EndWith(mark);
  }
  StartRank(0)->Die();  // a helper that was not forked, but started
  const std::vector<std::string> listed{"0 up 0", "1 down 0", "2 down 0", "3 down 0", "4 down 0"};
  EXPECT_EQ(Listed(), listed);
  EXPECT_THAT(Ends(), ElementsAre("rep_0 1 exit_0", "rep_0 2 exit_3", "rep_0 3 unknown", "rep_0 4 unknown"));
  StartAgent();
  EXPECT_EQ(Listed(), listed) << "also by the next agent";
}

TEST_F(NewProcessesTest, AProgramMayRecordAfterItsHelper) {
  const auto helper = StartRank(0);
  helper->segment.header().start_ticks = 200;
  helper->Put().Die();
  const auto program = StartRank(0);
  program->segment.header().start_ticks = 100;
  program->Put();
  EXPECT_THAT(Listed(), ElementsAre("0 up 0", "1 down 0"));
}

TEST_F(NewProcessesTest, ASuccessorHasHelpersToo) {
  StartRank(0)->Die();
  const auto successor = StartRank(0);
  Fork()->Die();
  const auto helper = Fork();
  EXPECT_THAT(Listed(), ElementsAre("0 up 1", "2 up 0", "1 down 0"));
  EXPECT_THAT(Ends(), ElementsAre("rep_0 0 unknown", "rep_0 1 unknown"));
}

// A data loader, for example, which notices the death of the rank a moment later.
TEST_F(NewProcessesTest, AHelperThatOutlivesItsProgramDoesNotReplaceIt) {
  const auto program = StartRank(0);
  Collect();
  auto helper = Fork();
  program->Die();
  EXPECT_THAT(Listed(), ElementsAre("1 up 0", "0 down 0"));
  EXPECT_THAT(Ends(), ElementsAre("rep_0 0 unknown"));
  helper->Die();
  Collect();
  EXPECT_THAT(Ends(), ElementsAre("rep_0 1 unknown"));
  StartRank(0)->Die();
  helper = Fork();
  EXPECT_THAT(Listed(), ElementsAre("1 up 1", "0 down 1"));
}

TEST_F(NewProcessesTest, AHelperHasTheNumberOfAnEarlierOne) {
  const auto program = StartRank(0);
  auto helper = Fork();
  Collect();
  helper->End();
  helper = Fork();
  EXPECT_THAT(Listed(), ElementsAre("0 up 0", "1 up 1"));
}

JobEvent Event(const std::string& name) {
  JobEvent event;
  event.unix_ms = 1'000;
  event.type = "my_app";
  event.name = name;
  event.metadata = {{"bytes", int64_t{1024}}, {"path", std::string("/ckpt\n7")}};
  return event;
}

TEST(LastEventsTest, TheNewestOnesAreKept) {
  std::vector<JobEvent> kept;
  for (int i = 0; i < 9; ++i) KeepLast(std::vector{Event(std::to_string(i))}, kept);
  ASSERT_THAT(kept, SizeIs(5));
  EXPECT_EQ(kept.front().name, "4");
  EXPECT_EQ(kept.back().name, "8");
}

TEST(LastEventsTest, TheirTextsAreOnOneLine) {
  EXPECT_THAT(TextsOf(std::vector{Event("saved")}), ElementsAre("00:00:01 my_app saved: bytes=1024, path=/ckpt 7"));
  JobEvent large = Event("large");
  large.metadata = {{"text", std::string(1000, 'x')}};
  EXPECT_THAT(TextsOf(std::vector{large})[0], SizeIs(303));
}

std::string CutMessage(const std::string& message) {
  JobEvent event;
  event.type = "python";
  event.name = "uncaught_exception";
  event.metadata = {{"message", message}};
  return ExceptionIn(std::vector{event})->message;
}

TEST(LastEventsTest, ATextIsCutBetweenTwoCharacters) {
  std::string accents;
  for (int i = 0; i < 200; ++i) accents += "\u00e9";
  EXPECT_EQ(CutMessage(accents), accents.substr(0, 300) + "...");
  EXPECT_EQ(CutMessage("x" + accents), "x" + accents.substr(0, 298) + "...");
  EXPECT_EQ(CutMessage(std::string(400, '\x80')), "...");  // no character begins
}

TEST(LastEventsTest, AnExceptionIsFoundAndIsNoEventOfTheList) {
  JobEvent event;
  event.type = "python";
  event.name = "uncaught_exception";
  event.metadata = {{"type", std::string("OSError")}, {"message", std::string("full")}, {"where", std::string("a.py:1 in f")},
                    {"errno", int64_t{28}},           {"phase", std::string("data")},   {"later", int64_t{1}}};
  const std::vector events{Event("saved"), event};
  EXPECT_THAT(TextsOf(events), ElementsAre(StartsWith("00:00:01 my_app saved")));
  const auto exception = ExceptionIn(events);
  ASSERT_TRUE(exception);
  EXPECT_EQ(exception->type, "OSError");
  EXPECT_EQ(exception->message, "full");
  EXPECT_EQ(exception->where, "a.py:1 in f");
  EXPECT_EQ(exception->phase, "data");
  EXPECT_EQ(exception->error_number, 28);
  EXPECT_FALSE(exception->was_caught);
  EXPECT_FALSE(ExceptionIn(std::vector{Event("saved")}));
  event.metadata.emplace_back("caught", true);
  EXPECT_TRUE(ExceptionIn(std::vector{event})->was_caught);
}

}  // namespace
}  // namespace persia::agent::testing
