// How processes end: what a new agent knows of it, and which deaths stay visible.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernel/proc_reader.h"
#include "ledger/retired_test.h"
#include "persia/metrics/internal/process.h"
#include "persia/metrics/metrics.h"
#include "worker.h"
#include "workers/exits.h"

namespace persia::agent::testing {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::Pair;

class ExitsTest : public RetiredTest {
 protected:
  // Role, replica and ordinal of the listed processes, with their state and last exit.
  std::vector<std::string> Listed() {
    Collect();
    std::vector<std::string> listed;
    for (const Process& process : source().processes()) {
      std::string text;
      for (const auto& [name, value] : process.identity.labels) {
        if (name == "role" || name == "instance") text += value + " ";
      }
      listed.push_back(text + std::to_string(process.ordinal) + (process.alive ? " up " : " down ") + process.last_exit +
                       (process.died ? " died" : ""));
    }
    return listed;
  }
  std::map<std::string, uint64_t> Exits() {
    Collect();
    std::map<std::string, uint64_t> exits;
    for (const EndedProcesses& ended : source().ended()) exits.insert(ended.exits.begin(), ended.exits.end());
    return exits;
  }
  const uint64_t own_namespace_ = ProcReader().PidNamespace("self").value();

  std::unique_ptr<Worker> StartRank(int replica, uint32_t restart_count = 0) {
    auto process = Start({.role = "worker", .replica = replica, .restart_count = restart_count});
    process->Put();
    return process;
  }
  // Pid 4711 of the agent's own namespace.
  void SetProcess(Worker& process, uint64_t start_ticks) const {
    process.segment.header().pid_namespace = own_namespace_;
    process.segment.header().pid = 4711;
    process.segment.header().start_ticks = start_ticks;
    process.Put();
  }
};

TEST_F(ExitsTest, EachEndIsCountedByItsReason) {
  for (const uint64_t mark : {segment::kExitCode + 0, segment::kExitCode + 0, segment::kExitCode + 3,
                              uint64_t{segment::kExitOfUnknownCode}, uint64_t{segment::kNoExit}}) {
    Start()->Put().EndWith(mark);
  }
  const std::map<std::string, uint64_t> expected{{"exit", 1}, {"exit_0", 2}, {"exit_3", 1}, {"unknown", 1}};
  EXPECT_EQ(Exits(), expected);
  EXPECT_EQ(Exits(), expected) << "once";
  StartAgent();
  EXPECT_EQ(Exits(), expected) << "also by the next agent";
}

TEST_F(ExitsTest, CountsOfExitsOutliveACheckpoint) {
  for (int i = 0; i < 3000; ++i) {
    Start()->Put().EndWith(segment::kExitCode + i % 2);
    if (i % 500 == 0) Collect();
  }
  EXPECT_THAT(Exits(), ElementsAre(Pair("exit_0", 1500), Pair("exit_1", 1500)));
  StartAgent();
  EXPECT_THAT(Exits(), ElementsAre(Pair("exit_0", 1500), Pair("exit_1", 1500)));
}

TEST_F(ExitsTest, ADeadRankStaysUntilItsReplacementStarts) {
  const auto other = StartRank(1);
  StartRank(0)->Die();
  EXPECT_THAT(Listed(), ElementsAre("rep_1 worker 0 up ", "rep_0 worker 0 down unknown died"));
  passed_ += seconds(100'000);
  EXPECT_THAT(Listed(), ElementsAre("rep_1 worker 0 up ", "rep_0 worker 0 down unknown died"));
  StartAgent();
  EXPECT_THAT(Listed(), ElementsAre("rep_1 worker 0 up ", "rep_0 worker 0 down unknown died"));
  const auto replacement = StartRank(0);
  EXPECT_THAT(Listed(), ElementsAre("rep_1 worker 0 up ", "rep_0 worker 0 up unknown"));
}

// Of more deaths than stay visible, those of ranks that run again do not count.
TEST_F(ExitsTest, ManyRanksThatWereReplacedHideNoDeadOne) {
  StartRank(5000)->Die();
  Collect();
  passed_ += seconds(10);
  std::vector<std::unique_ptr<Worker>> ranks;
  for (int replica = 0; replica <= static_cast<int>(RetiredProcesses::kMaxMissed); ++replica) StartRank(replica)->Die();
  Collect();
  for (int replica = 0; replica <= static_cast<int>(RetiredProcesses::kMaxMissed); ++replica) {
    ranks.push_back(StartRank(replica));
  }
  Collect();
  passed_ += seconds(1000);
  EXPECT_THAT(Listed(), ::testing::Contains("rep_5000 worker 0 down unknown died"));
}

// Other agents may have ranks of the same job: this one cannot know whether the job goes on.
TEST_F(ExitsTest, TheOnlyRankOfAnAgentIsMissedUntilItIsReplaced) {
  StartRank(0)->Die();
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 down unknown died"));
  passed_ += seconds(100'000);
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 down unknown died"));
  StartAgent();
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 down unknown died"));
  const auto replacement = StartRank(0);
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 up unknown"));
}

TEST_F(ExitsTest, ADeadRankStaysMissedWhenTheOthersHaveEndedWell) {
  auto other = StartRank(1);
  StartRank(0)->Die();
  Collect();
  passed_ += seconds(1000);
  other->End();
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 down unknown died", "rep_1 worker 0 down exit_0"));
  passed_ += seconds(1000);
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 down unknown died"));
}

// The page and the report of a command that has ended show all of its ranks, also those that died long before.
TEST_F(ExitsTest, WhenTheCommandHasEndedNothingIsMissedOrHiddenAnyMore) {
  source().SetCommand({});
  const auto other = StartRank(1);
  other->segment.Gauge("my_app", "loss", {}, 0.5);
  other->Put();
  StartRank(2)->End();
  StartRank(0)->Die();
  Collect();
  passed_ += seconds(1000);
  EXPECT_THAT(Listed(), ElementsAre("rep_1 worker 0 up ", "rep_0 worker 0 down unknown died")) << "rank 2 left long ago";
  other->Die();
  source().SetCommand({.has_ended = true});
  const std::vector<std::string> all{"rep_0 worker 0 down unknown", "rep_1 worker 0 down unknown"};
  EXPECT_EQ(Listed(), all);
  passed_ += seconds(100'000);
  EXPECT_EQ(Listed(), all);
  EXPECT_EQ(Shown("my_app_loss@rep_1/worker"), "0.5") << "its last value is that of the job";
}

// The same run goes on after a failure.
TEST_F(ExitsTest, ADeathBeforeTheCommandBeganIsNotMissed) {
  auto former = StartRank(0);
  former->segment.header().start_ticks = 100;
  former->Put().Die();
  auto own = StartRank(1);
  own->segment.header().start_ticks = 200;
  own->segment.header().birth_unix_ns = 1;  // the wall clock was set back since the command began
  own->Put();
  own->Die();
  source().SetCommand({.began_ticks = 200});
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 down unknown", "rep_1 worker 0 down unknown died"));
  StartAgent();
  source().SetCommand({.began_ticks = 200});
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 down unknown", "rep_1 worker 0 down unknown died"));
}

// Those that ended before the signal stay missed.
TEST_F(ExitsTest, AnEndInAShutdownIsNotMissed) {
  const auto other = StartRank(1);
  StartRank(0)->Die();
  Collect();
  passed_ += seconds(10);
  source().SetCommand({.interrupted_at = std::chrono::system_clock::time_point(seconds(1'800'000'005))});
  other->Die();
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 down unknown died", "rep_1 worker 0 down unknown"));
}

TEST_F(ExitsTest, ADeathBesideTheCommandIsMissedAlsoIfItsProcessBeganBefore) {
  auto beside = StartRank(0);
  beside->segment.header().start_ticks = 100;
  beside->Put();
  source().SetCommand({.began_ticks = 200});
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 up "));
  passed_ += seconds(1);
  beside->Die();
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 down unknown died"));
}

// Its ticks are of another boot.
TEST_F(ExitsTest, ADeathBeforeTheMachineWasBootedIsNotMissed) {
  auto former = StartRank(0);
  former->segment.header().start_ticks = 1000;
  former->segment.header().birth_unix_ns = 1'000'000'000;
  former->Put().Die();
  source().SetCommand({.began_ticks = 200, .booted = std::chrono::system_clock::time_point(seconds(2))});
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 down unknown"));
}

TEST_F(ExitsTest, TheTimeOfADeathIsKept) {
  StartRank(0)->Die();
  Collect();
  const auto ended_at = [&] {
    Collect();
    return source().processes()[0].ended_at.time_since_epoch();
  };
  EXPECT_EQ(ended_at(), seconds(1'800'000'000));
  passed_ += seconds(1000);
  StartAgent();
  EXPECT_EQ(ended_at(), seconds(1'800'000'000)) << "from the fold";
  CheckpointBytes();
  StartAgent();
  EXPECT_EQ(ended_at(), seconds(1'800'000'000)) << "from a checkpoint";
}

// An elastic job that goes on with fewer workers.
TEST_F(ExitsTest, ARankThatItsLauncherGaveUpIsNotMissed) {
  auto other = StartRank(0);
  StartRank(1)->Die();
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 up ", "rep_1 worker 0 down unknown died"));
  other->End();
  const auto restarted = StartRank(0, 1);
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 up exit_0", "rep_1 worker 0 down unknown"));
  passed_ += seconds(301);
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 up exit_0"));
  restarted->End();
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 down exit_0")) << "not even once the others have ended";
}

TEST_F(ExitsTest, AFurtherProcessOfARankIsNotMissed) {
  const auto rank = StartRank(0);
  Collect();
  auto loader = StartRank(0);
  Collect();
  loader->Die();
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 up ", "rep_0 worker 1 down unknown"));
}

// The process that reaps a child tells its wait status a moment after its end.
TEST_F(ExitsTest, AnEndWithoutAMarkWaitsForTheNextCollectionIfSomebodyMayTell) {
  ExitReasons reaped;
  reaped_ = &reaped;
  StartAgent();
  auto rank = StartRank(0);
  SetProcess(*rank, 9);
  const auto other = StartRank(1);
  Collect();
  rank->Die();
  EXPECT_THAT(Listed(), ElementsAre("rep_1 worker 0 up ", "rep_0 worker 0 down "));
  EXPECT_THAT(source().ended(), ::testing::IsEmpty()) << "a count that is told later does not move";
  EXPECT_THAT(Exits(), ElementsAre(Pair("unknown", 1))) << "but no longer";
  auto second = StartRank(0);
  SetProcess(*second, 10);
  Collect();
  second->Die();
  Collect();
  reaped.Add(4711, 10, SIGKILL);
  EXPECT_THAT(Exits(), ElementsAre(Pair("SIGKILL", 1), Pair("unknown", 1)));
  StartAgent();
  EXPECT_THAT(Exits(), ElementsAre(Pair("SIGKILL", 1), Pair("unknown", 1))) << "also by the next agent";
}

// A reader of its memory map keeps the lock of its segment.
TEST_F(ExitsTest, AReapedProcessHasEndedAlsoWhileItsSegmentIsLocked) {
  ExitReasons reaped;
  reaped_ = &reaped;
  StartAgent();
  auto rank = StartRank(0);
  SetProcess(*rank, 9);
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 up "));
  reaped.Add(4711, 9, SIGKILL);
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 down SIGKILL died"));
}

TEST_F(ExitsTest, ASuccessorGetsTheNumberOfOneWhoseEndIsNotKnownYet) {
  ExitReasons reaped;
  reaped_ = &reaped;
  StartAgent();
  auto rank = StartRank(0);
  Collect();
  rank->Die();
  const auto successor = StartRank(0);
  EXPECT_THAT(Listed(), ElementsAre("rep_0 worker 0 up unknown"));
}

// Of the real library, in real processes.
class RealExitsTest : public metrics::tests::WorkerTest {
 protected:
  // How an agent names the end of a process that has counted and then calls `end`.
  template <class End>
  std::string ReasonOf(End end) {
    const pid_t pid = fork();
    if (pid == 0) {
      setenv("PERSIA_METRICS_DIR", directory().c_str(), 1);
      metrics::Counter("my_app", "batches").Increment();
      end();
      _exit(99);
    }
    siginfo_t info{};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
    const std::string as_zombie = LastExit();
    EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
    const std::string reaped = LastExit();
    for (const auto& entry : std::filesystem::directory_iterator(directory())) std::filesystem::remove(entry);
    return as_zombie + " " + reaped;
  }

 private:
  std::string LastExit() {
    SegmentSource source({.directory = directory(), .job = "golden"});
    source.Collect();
    return source.processes().size() == 1 ? source.processes()[0].last_exit : "?";
  }
};

TEST_F(RealExitsTest, ANormalExitLeavesItsCode) {
  EXPECT_EQ(ReasonOf([] { std::exit(0); }), "exit_0 exit_0");
  EXPECT_EQ(ReasonOf([] { std::exit(3); }), "exit_3 exit_3");
  EXPECT_EQ(ReasonOf([] { std::exit(256 + 7); }), "exit_7 exit_7") << "as its parent gets it";
}

TEST_F(RealExitsTest, ASignalLeavesNoMark) {
  EXPECT_EQ(ReasonOf([] { raise(SIGKILL); }), "SIGKILL ") << "only its zombie tells";
  EXPECT_EQ(ReasonOf([] { _exit(3); }), "exit_3 ");
  EXPECT_EQ(ReasonOf([] { _exit(0); }), " ");
}

TEST_F(RealExitsTest, ABindingMarksAnExitThatRunsNoHandlers) {
  EXPECT_EQ(ReasonOf([] {
              metrics::internal::MarkExit(4);
              _exit(4);
            }),
            "exit_4 exit_4");
}

// It has no segment of its own, and its exit is not its parent's.
TEST_F(RealExitsTest, AChildThatRecordsNothingLeavesNoMark) {
  EXPECT_EQ(ReasonOf([] {
              const pid_t child = fork();
              if (child == 0) std::exit(5);
              waitpid(child, nullptr, 0);
              raise(SIGKILL);
            }),
            "SIGKILL ");
}

}  // namespace
}  // namespace persia::agent::testing
