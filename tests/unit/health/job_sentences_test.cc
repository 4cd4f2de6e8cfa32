// The lines of the log and the reasons of the job's health: each sentence, and what happens when it is said. deaths_test.cc has
// the sentences of deaths; tests/unit/web/sentences_test.cc those of the page and `top`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "health/awaited.h"
#include "health/job_health_fixture.h"
#include "health/not_finite.h"
#include "health/phrases.h"
#include "health/rank.h"
#include "health/rank_verdicts.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using Texts = std::vector<std::string>;

constexpr char kLookAtRepOne[] = ". Look at: its stacks: py-spy dump --pid 102 (Python) or gdb -p 102.";
constexpr char kLookAtRanks[] =
    ". Look at: the stacks of each rank, for trainer rep_0: py-spy dump --pid 101 (Python) or gdb -p 101.";
constexpr char kLookAtAwaited[] = ". Look at: the stacks of trainer rep_1: py-spy dump --pid 102 (Python) or gdb -p 102.";

std::string LookedAt(const std::string& text, const char* look_at) { return text + look_at; }

// A job of three ranks that has been running for 100 seconds.
class RunningJob : public JobHealthTest {
 public:
  RunningJob() { StartJob(); }
  void TestBody() override {}
  void Phase(uint32_t rank, const std::string& phase, double step) {
    processes[rank].phase = phase;
    processes[rank].in_phase = seconds(94);
    processes[rank].step = step;
  }
  void Ends(int exit_code) {
    exit_code_ = exit_code;
    Run(seconds(10));
  }
  void IsAskedToEnd(const std::string& signal) { interruption_ = Interruption{.signal = signal, .at = Wall()}; }
  void GoesOn() { interruption_.reset(); }
  void EndsNow(uint32_t rank, const std::string& exit) {
    End(rank, exit, false);
    ends.back().end->at = Wall();
  }
  void IsStopped(uint32_t rank) { stopped_ = processes[rank].id; }
  void HasNoCommand() { has_command_ = false; }
  [[nodiscard]] Texts Said() const { return log_->Messages(); }

  using JobHealthTest::End;
  using JobHealthTest::Reasons;
  using JobHealthTest::Replace;
  using JobHealthTest::Run;
  using JobHealthTest::Start;
};

struct SentencesOfJob {
  std::function<void(RunningJob&)> when;
  Texts logged;
  Texts reasons;
};

const std::vector<SentencesOfJob>& SentencesOfJobs() {
  static const std::vector<SentencesOfJob> table = {
      {[](RunningJob& job) {
         job.Run(seconds(50), {0, 1});
       },
       {},
       {}},
      {[](RunningJob& job) {
         job.Start(3);
         job.Run(seconds(10), {0, 1, 2});
       },
       {"trainer rep_3 started, pid 104"},
       {}},
      {[](RunningJob& job) {
         job.End(1, "exit_0", false);
         job.Run(seconds(10), {0, 2});
       },
       {"trainer rep_1 has ended: exit code 0"},
       {}},
      {[](RunningJob& job) {
         job.Replace(1, "exit_0");
         job.Run(seconds(10), {0, 2});
       },
       {"trainer rep_1 has ended: exit code 0", "trainer rep_1 started again, pid 104, restart 1"},
       {}},
      {[](RunningJob& job) {
         for (const uint32_t rank : {0, 2}) job.Phase(rank, "forward", 812);
         job.Run(seconds(60), {0, 2});
       },
       {LookedAt("trainer rep_1 hangs: none of its metrics has changed for 60 s, while others of its job go on",
                 kLookAtRepOne)},
       {LookedAt("hung: trainer rep_1 hangs", kLookAtRepOne)}},
      {[](RunningJob& job) {
         job.Phase(1, "data", 812);
         job.Run(seconds(60), {0, 2});
         job.Run(seconds(10), {0, 1, 2});
       },
       {LookedAt("trainer rep_1 hangs: none of its metrics has changed for 60 s, while others of its job go on; it has been in "
                 "data for 94 s, in step 812",
                 kLookAtRepOne),
        "trainer rep_1 goes on"},
       {}},
      {[](RunningJob& job) { job.Run(seconds(60)); },
       {LookedAt("the job hangs: no metric of any process has changed for 60 s", kLookAtRanks)},
       {LookedAt("job_hung: no metric of any process has changed for 60 s", kLookAtRanks)}},
      {[](RunningJob& job) { job.Run(seconds(90)); },
       {LookedAt("the job hangs: no metric of any process has changed for 60 s", kLookAtRanks)},
       {LookedAt("job_hung: no metric of any process has changed for 90 s", kLookAtRanks)}},
      {[](RunningJob& job) {
         job.Run(seconds(60));
         job.Run(seconds(10), {0, 1, 2});
       },
       {LookedAt("the job hangs: no metric of any process has changed for 60 s", kLookAtRanks), "the job goes on"},
       {}},
      {[](RunningJob& job) {
         for (const uint32_t rank : {0, 2}) job.Phase(rank, "sync", 812);
         job.Phase(1, "other", 812);
         job.Run(seconds(60));
       },
       {LookedAt(
           "the job hangs: no metric of any process has changed for 60 s; trainer rep_1 has been outside of its phases for "
           "94 s, in step 812; 2 wait in sync",
           kLookAtAwaited)},
       {LookedAt("job_hung: trainer rep_1 has been outside of its phases for 94 s, in step 812; 2 wait in sync",
                 kLookAtAwaited)}},
      {[](RunningJob& job) {
         job.Phase(1, "optimizer", 812);
         job.IsStopped(1);
         job.Run(seconds(60), {0, 2});
       },
       {"trainer rep_1 hangs: none of its metrics has changed for 60 s, while others of its job go on; it has been in "
        "optimizer for 94 s, in step 812; it is stopped by a signal. Look at: the sender of the signal; kill -CONT 102 lets it "
        "go on."},
       {"hung: trainer rep_1 hangs, in optimizer for 94 s, in step 812; it is stopped by a signal. Look at: the sender of the "
        "signal; kill -CONT 102 lets it go on."}},
      {[](RunningJob& job) {
         job.IsStopped(1);
         job.Run(seconds(60));
       },
       {"the job hangs: no metric of any process has changed for 60 s. Look at: trainer rep_1, which is stopped: the sender of "
        "the signal; kill -CONT 102 lets it go on."},
       {"job_hung: no metric of any process has changed for 60 s. Look at: trainer rep_1, which is stopped: the sender of the "
        "signal; kill -CONT 102 lets it go on."}},
      // The death is the first reason.
      {[](RunningJob& job) {
         for (const uint32_t rank : {0, 2}) job.Phase(rank, "sync", 812);
         job.End(1, "exit_3", true);
         job.Run(seconds(60));
       },
       {"trainer rep_1 died: exit code 3; pid 102. Look at: the log of the process.",
        "the job hangs: no metric of any process has changed for 60 s; trainer rep_1 died; 2 others wait in sync for it"},
       {"died: trainer rep_1 died: exit code 3", "job_hung: trainer rep_1 died; 2 others wait in sync for it"}},
      // Ranks that end do not go on.
      {[](RunningJob& job) {
         job.Run(seconds(60));
         for (const uint32_t rank : {0, 1, 2}) job.End(rank, "exit_0", false);
         job.Run(seconds(10));
       },
       {LookedAt("the job hangs: no metric of any process has changed for 60 s", kLookAtRanks),
        "trainer rep_0 has ended: exit code 0", "trainer rep_1 has ended: exit code 0", "trainer rep_2 has ended: exit code 0"},
       {}},
      {[](RunningJob& job) {
         for (int i = 0; i < 3; ++i) {
           job.Replace(1, "exit_0");
           job.Run(seconds(10), {0, 2});
         }
       },
       {"trainer rep_1 has ended: exit code 0", "trainer rep_1 started again, pid 104, restart 1",
        "trainer rep_1 has ended: exit code 0", "trainer rep_1 started again, pid 105, restart 2",
        "trainer rep_1 has ended: exit code 0", "trainer rep_1 started again, pid 106, restart 3"},
       {"restarting: trainer rep_1 restarts again and again"}},
      {[](RunningJob& job) { job.Ends(0); }, {"the command has ended with exit code 0"}, {}},
      {[](RunningJob& job) { job.Ends(3); }, {"the command has ended with exit code 3"}, {}},
      {[](RunningJob& job) { job.Ends(130); }, {"the command has ended with exit code 130, interrupted by SIGINT"}, {}},
      {[](RunningJob& job) { job.Ends(143); }, {"the command has ended with exit code 143, terminated by SIGTERM"}, {}},
      {[](RunningJob& job) {
         job.IsAskedToEnd("SIGINT");
         job.EndsNow(1, "SIGINT");
         job.Run(seconds(20), {0, 2});
       },
       {"the job is asked to end by SIGINT", "trainer rep_1 has ended: SIGINT, after SIGINT to the job"},
       {"interrupted: interrupted by SIGINT; its command has not ended yet"}},
      {[](RunningJob& job) {
         job.IsAskedToEnd("SIGTERM");
         job.End(1, "exit_0", false);
         job.Ends(1);
       },
       {"the job is asked to end by SIGTERM", "trainer rep_1 has ended: exit code 0",
        "the command has ended with exit code 1, terminated by SIGTERM"},
       {}},
      {[](RunningJob& job) {
         job.IsAskedToEnd("SIGTERM");
         job.Ends(0);
       },
       {"the job is asked to end by SIGTERM", "the command has ended with exit code 0"},
       {}},
      // It handled the signal, is asked once more, and then ends.
      {[](RunningJob& job) {
         job.IsAskedToEnd("SIGINT");
         job.Run(seconds(10), {0, 1, 2});
         job.GoesOn();
         job.Run(seconds(10), {0, 1, 2});
         job.IsAskedToEnd("SIGTERM");
         job.Run(seconds(10), {0, 1, 2});
         job.GoesOn();
         job.Ends(1);
       },
       {"the job is asked to end by SIGINT", "the job is asked to end by SIGTERM", "the command has ended with exit code 1"},
       {}},
  };
  return table;
}

TEST(JobSentences, AreSaidWhenTheyAreTrue) {
  for (size_t i = 0; i < SentencesOfJobs().size(); ++i) {
    const auto& [when, logged, reasons] = SentencesOfJobs()[i];
    RunningJob job;
    when(job);
    EXPECT_EQ(job.Said(), logged) << "row " << i;
    EXPECT_EQ(job.Reasons(), reasons) << "row " << i;
  }
}

TEST(JobSentences, ADeathIsInTheLogWithWhereToLook) {
  RunningJob job;
  job.End(1, "SIGSEGV", true);
  job.Run(seconds(10), {0, 2});
  ASSERT_EQ(job.Said().size(), 1U);
  EXPECT_THAT(job.Said()[0], ::testing::StartsWith("trainer rep_1 died: SIGSEGV; pid 102. Look at: "));
  EXPECT_EQ(job.Reasons(), (Texts{"died: trainer rep_1 died: SIGSEGV"}));
}

TEST(JobSentences, OfAttempts) {
  EXPECT_EQ(AttemptText({.number = 2}), "attempt 2 of the run");
  EXPECT_EQ(AttemptText({.number = 3, .run_began = HealthReport::TimePoint(seconds(1'800'000'000))}),
            "attempt 3 of the run that began at 2027-01-15 08:00:00 UTC");
}

TEST(JobSentences, ADurationHasItsUnit) {
  const auto text = [](double seconds) { return DurationText(std::chrono::duration<double>(seconds)); };
  EXPECT_EQ(text(0), "0 s");
  EXPECT_EQ(text(0.0096), "9.6 ms");
  EXPECT_EQ(text(0.12), "120 ms");
  EXPECT_EQ(text(0.9994), "999 ms");
  EXPECT_EQ(text(0.9996), "1 s");
  EXPECT_EQ(text(1.25), "1.2 s");
  EXPECT_EQ(text(94.4), "94 s");
}

TEST(JobSentences, TheRanksThatRunAlreadyAreOneLine) {
  class FoundJob : public JobHealthTest {
   public:
    void TestBody() override {}
    Texts Said(uint32_t trainers, uint32_t servers = 0) {
      for (uint32_t rank = 0; rank < trainers; ++rank) Start(rank);
      for (uint32_t rank = 0; rank < servers; ++rank) Start(trainers + rank, "server");
      Look();
      Look();
      EXPECT_EQ(Events(), Texts());
      return log_->Messages();
    }
  };
  EXPECT_EQ(FoundJob().Said(0), Texts());
  EXPECT_EQ(FoundJob().Said(1), Texts{"trainer rep_0 runs already"});
  EXPECT_EQ(FoundJob().Said(2), Texts{"trainer rep_0 and rep_1 run already"});
  EXPECT_EQ(FoundJob().Said(4), Texts{"trainer rep_0, rep_1 and 2 more run already"});
  EXPECT_EQ(FoundJob().Said(3, 1), Texts{"server rep_3; trainer rep_0, rep_1 and 1 more run already"});
}

Identity TrainerThree() { return {"dlrm", {{"instance", "rep_3"}, {"role", "trainer"}}}; }

TEST(JobSentences, OfVerdicts) {
  StragglerJudge::Verdict slow{
      .identity = TrainerThree(), .phase = "data", .seconds_per_step = 0.1234, .step_seconds = 12.3, .waiting = 3};
  EXPECT_EQ(SentenceOf(slow),
            "trainer rep_3: 123 ms longer in data than the others in each step of 12 s; 3 others wait for it in sync");
  slow.phase = "other";
  slow.waiting = 1;
  EXPECT_EQ(
      SentenceOf(slow),
      "trainer rep_3: 123 ms longer outside of its phases than the others in each step of 12 s; 1 other waits for it in sync");
  EXPECT_EQ(SentenceOf(RankReport::Slowest{slow, seconds(245)}),
            "trainer rep_3 was the slowest rank: for 245 s, it was 123 ms longer outside of its phases than the others in each "
            "step of 12 s");
  const std::string look_at = kLookAtRepOne;
  AwaitedJudge::Verdict awaited{};
  awaited.rank.second.pid = 102;
  awaited.identity = TrainerThree();
  awaited.phase = "data";
  awaited.in_phase = seconds(94);
  awaited.waiting = 3;
  EXPECT_EQ(SentenceOf(awaited), "trainer rep_3 hangs in data, 94 s; 3 others wait in sync" + look_at);
  awaited.step = 812;
  EXPECT_EQ(SentenceOf(awaited), "trainer rep_3 hangs in data since step 812, 94 s; 3 others wait in sync" + look_at);
  awaited.is_stopped = true;
  EXPECT_EQ(SentenceOf(awaited),
            "trainer rep_3 hangs: stopped by a signal in data since step 812, 94 s; 3 others wait in sync. Look at: the sender "
            "of the signal; kill -CONT 102 lets it go on.");
  awaited.phase = kStoppedPhase;
  awaited.waiting = 1;
  EXPECT_EQ(SentenceOf(awaited),
            "trainer rep_3 hangs: stopped by a signal in sync since step 812, 94 s; 1 other waits in sync. Look at: the sender "
            "of the signal; kill -CONT 102 lets it go on.");
  awaited.phase = "sync";
  awaited.is_stopped = false;
  awaited.steps = 813;
  EXPECT_EQ(SentenceOf(awaited),
            "trainer rep_3 hangs in sync since step 812, 94 s; 1 other waits in sync of step 813" + look_at);
}

TEST(JobSentences, OfValuesAndSharedRanks) {
  NotFiniteValue loss{.family = "my_app_loss", .identity = TrainerThree(), .labels = {{"part", "a"}}, .value = "NaN"};
  EXPECT_EQ(SentenceOf(loss), "my_app_loss part=a is NaN on trainer rep_3");
  loss.step = 1301;
  EXPECT_EQ(SentenceOf(loss, 1), "my_app_loss part=a is NaN on trainer rep_3 and 1 other, since step 1301");
  EXPECT_EQ(SentenceOf(loss, 63), "my_app_loss part=a is NaN on trainer rep_3 and 63 others, since step 1301");
  EXPECT_EQ(
      SentenceOf(SharedRanks::Pair{{"worker", 0}, 4711, 4712}),
      "worker rep_0: the processes 4711 and 4712 train at once under this name; their gauges replace each other, and goodput "
      "follows one of them. Give each rank its own REPLICA_INDEX or RANK (docs/ranks.md)");
}

}  // namespace
}  // namespace persia::agent
