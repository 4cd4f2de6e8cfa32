// What is said of the job as a whole: each sentence, and the status in which it is true. The page and `top` show them as they
// are. The sentences of a reason's circumstances are those of job_health_test.cc, deaths_test.cc and rank_verdicts_test.cc.
#include "web/sentences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Sentences = std::vector<std::string>;
using Reason = HealthReport::Reason;

constexpr char kDeath[] = "trainer rep_3 died: SIGKILL (it was killed; by whom?); in data, step 812";

constexpr char kLost[] = "3 values of train/loss lost in 4 ranks: a counter takes no NaN";

Identity Rank(int number) { return {"dlrm", {{"instance", "rep_" + std::to_string(number)}, {"role", "trainer"}}}; }

// A job whose parts can be changed.
struct Job {
  HealthReport health;
  RankReport ranks;
  NotFiniteReport not_finite;
  std::vector<Reason> losses;
  std::optional<Throughput> throughput = Throughput{.name = "my_app_steps_total", .now = 100, .last_10m = 100};

  explicit Job(const std::vector<WorkerState>& states = std::vector<WorkerState>(4, WorkerState::kRunning)) {
    health.state = JobState::kRunning;
    for (size_t i = 0; i < states.size(); ++i) Worker("trainer", i, states[i]);
    ranks.judged = {{.role = "trainer", .ranks = states.size(), .measured = 48, .needed = 48}};
  }
  Job& Worker(const std::string& role, size_t number, WorkerState state, const std::string& process = "0") {
    health.workers[{role, "rep_" + std::to_string(number), process}].state = state;
    return *this;
  }
  Job& Over(JobState state, std::optional<int> code) {
    health.state = state;
    health.exit_code = code;
    return *this;
  }
  Job& Because(const std::string& kind, const std::string& text, std::optional<int> rank = 3) {
    const auto key = rank ? std::optional(WorkerKey{"trainer", "rep_" + std::to_string(*rank), "0"}) : std::nullopt;
    health.reasons.push_back({kind, text, key, {}});
    if (health.state == JobState::kRunning) health.state = JobState::kDegraded;
    return *this;
  }
  Job& Straggler() {
    ranks.stragglers = {
        {{.identity = Rank(3), .phase = "data", .seconds_per_step = 0.1, .step_seconds = 0.5, .waiting = 3}, {}}};
    return *this;
  }
  Job& Slowest() {
    throughput->slowest = {"trainer", "rep_3", 2.5, 8.25};
    return *this;
  }
  Job& Awaited() {
    AwaitedJudge::Verdict verdict{};
    verdict.identity = Rank(3);
    verdict.phase = "data";
    verdict.step = 812;
    verdict.in_phase = seconds(94);
    verdict.waiting = 3;
    ranks.awaited = {{verdict, {}}};
    return *this;
  }
  Job& Standstill(int unmoved, const std::string& where, bool of_all = true) {
    ranks.standstills = {{"trainer", seconds(unmoved), where}};
    ranks.job_stands = of_all;
    ranks.numbers_steps = true;
    return *this;
  }
  Job& Standing(int number) {
    ranks.standing.push_back({Rank(number), seconds(25), {}});
    return *this;
  }
  Job& Loss(std::optional<double> step, size_t others = 0) {
    not_finite.families = {{{"my_app_loss", Rank(3), {}, "NaN", {}, step}, others}};
    return *this;
  }
  Job& Measured(size_t steps, bool is_undecided = false) {
    ranks.judged[0].measured = steps;
    ranks.judged[0].is_undecided = is_undecided;
    return *this;
  }
  Job& LosesValues() {
    losses = {{"lost", kLost}};
    return *this;
  }
  [[nodiscard]] AgentStatus Status() const {
    AgentStatus status;
    status.health = std::make_shared<const HealthReport>(health);
    status.ranks = std::make_shared<const RankReport>(ranks);
    status.not_finite = std::make_shared<const NotFiniteReport>(not_finite);
    status.throughput = throughput;
    status.losses = losses;
    return status;
  }
};

Sentences TextsOf(const Job& job) {
  Sentences texts;
  for (const Reason& reason : ReasonsOf(job.Status())) texts.push_back(reason.text);
  return texts;
}

constexpr char kSlow[] =
    "trainer rep_3: 100 ms longer in data than the others in each step of 500 ms; 3 others wait for it in sync";
constexpr char kAwaited[] =
    "trainer rep_3 hangs in data since step 812, 94 s; 3 others wait in sync. Look at: its stacks: py-spy dump --pid 0 "
    "(Python) or gdb -p 0.";
constexpr char kSlowest[] = "trainer rep_3 is slower than the others: 2.5 /s, the median is 8.2 /s";

TEST(TitleOf, HasTheStateAndTheExitCodeOfTheEnd) {
  const auto title = [](JobState state, std::optional<int> code) { return TitleOf(Job().Over(state, code).health); };
  EXPECT_EQ(title(JobState::kWaiting, {}), "Waiting");
  EXPECT_EQ(title(JobState::kRunning, {}), "Running");
  EXPECT_EQ(title(JobState::kDegraded, {}), "Degraded");
  EXPECT_EQ(title(JobState::kHung, {}), "Hung");
  EXPECT_EQ(title(JobState::kFinished, {}), "Finished");
  EXPECT_EQ(title(JobState::kFinished, 0), "Finished, exit 0");
  EXPECT_EQ(title(JobState::kFailed, 3), "Failed, exit 3");
  Job interrupted;
  interrupted.health.asked_to_end_by = "SIGINT";
  EXPECT_EQ(TitleOf(interrupted.health), "Running");
  EXPECT_EQ(TitleOf(interrupted.Over(JobState::kFinished, 130).health), "Interrupted by SIGINT, exit 130");
  interrupted.health.asked_to_end_by = "SIGTERM";
  EXPECT_EQ(TitleOf(interrupted.health), "Terminated by SIGTERM, exit 130");
}

TEST(ReasonsOf, HasEachReasonOnce) {
  const std::vector<std::pair<Job, Sentences>> table = {
      {Job(), {}},
      {Job().Over(JobState::kFailed, 3), {}},
      {Job().Over(JobState::kFailed, 3).Because("died", kDeath), {kDeath}},
      {Job().Straggler(), {kSlow}},
      {Job().Slowest(), {kSlowest}},
      {Job().Straggler().Slowest(), {kSlow}},
      {Job().Loss(301), {"my_app_loss is NaN on trainer rep_3, since step 301"}},
      {Job().Loss({}, 63), {"my_app_loss is NaN on trainer rep_3 and 63 others"}},
      {Job().Loss({}).Straggler().Because("died", kDeath), {kDeath, "my_app_loss is NaN on trainer rep_3", kSlow}},
      // The rank that the others wait for says more than that it, or the job, hangs.
      {Job().Awaited().Because("hung", "trainer rep_3 hangs"), {kAwaited}},
      {Job().Awaited().Because("job_hung", "no metric of any process has changed for 60 s", {}), {kAwaited}},
      {Job().Awaited().Because("hung", "trainer rep_2 hangs", 2), {"trainer rep_2 hangs", kAwaited}},
      {Job().Because("restarting", "trainer rep_1 restarts again and again", 1).Because("hung", "trainer rep_2 hangs", 2),
       {"trainer rep_2 hangs", "trainer rep_1 restarts again and again"}},
      // The others of a rank that died hang because of that.
      {Job().Because("job_hung", "trainer rep_3 died; 3 others wait in sync for it", {}).Because("died", kDeath),
       {kDeath, "trainer rep_3 died; 3 others wait in sync for it"}},
      {Job().LosesValues(), {kLost}},
      {Job().LosesValues().Straggler().Loss({}), {"my_app_loss is NaN on trainer rep_3", kSlow, kLost}},
      {Job().Over(JobState::kFinished, 0).LosesValues(), {kLost}},
      {Job().Standing(2), {"trainer rep_2 has made no step for 25 s, while others go on"}},
      // What was measured before says nothing of ranks that stand still or hang.
      {Job().Standing(3).Straggler().Slowest(), {"trainer rep_3 has made no step for 25 s, while others go on"}},
      {Job().Standstill(15, "").Straggler().Slowest(), {}},
      {Job().Awaited().Straggler().Slowest(), {kAwaited}},
      {Job().Standing(3).Worker("trainer", 3, WorkerState::kHung).Because("hung", "trainer rep_3 hangs"),
       {"trainer rep_3 hangs"}},
      {Job().Because("job_hung", "no metric of any process has changed for 60 s", {}).Over(JobState::kHung, {}).Straggler(),
       {"no metric of any process has changed for 60 s"}},
      // Of a job that is over, no rank is judged.
      {Job().Over(JobState::kFinished, 0).Straggler().Slowest().Awaited(), {}},
      {Job().Over(JobState::kFinished, 0).Loss(301), {"my_app_loss is NaN on trainer rep_3, since step 301"}},
  };
  for (size_t i = 0; i < table.size(); ++i) EXPECT_EQ(TextsOf(table[i].first), table[i].second) << "row " << i;
}

TEST(ReasonsOf, AreAtARank) {
  const auto reasons = ReasonsOf(Job().Loss(301).Slowest().Status());
  const WorkerKey rank{"trainer", "rep_3", "0"};
  EXPECT_THAT(reasons, ElementsAre(::testing::Field(&Reason::worker, rank), ::testing::Field(&Reason::worker, rank)));
  EXPECT_EQ(reasons[0].kind, "not_finite");
  EXPECT_EQ(reasons[1].kind, "slow");
}

TEST(HeadlineOf, IsTheFirstClauseOfADeathAndAHangWithoutWhereToLook) {
  EXPECT_EQ(HeadlineOf({"hung", kAwaited}), "trainer rep_3 hangs in data since step 812, 94 s; 3 others wait in sync");
  EXPECT_EQ(HeadlineOf({"died", kDeath}), "trainer rep_3 died: SIGKILL");
  EXPECT_EQ(HeadlineOf({"died", "trainer rep_3 died: exit code 1"}), "trainer rep_3 died: exit code 1");
  EXPECT_EQ(HeadlineOf({"slow", kSlow}), kSlow);
  EXPECT_EQ(HeadlineOf({"lost", kLost}), "3 values of train/loss lost in 4 ranks");
}

TEST(SituationOf, IsOfAJobWithoutReasons) {
  using enum WorkerState;
  const auto said = [](const Job& job) { return SituationOf(job.Status()); };
  EXPECT_EQ(said(Job(std::vector<WorkerState>()).Over(JobState::kWaiting, {})), "no worker has started yet");
  EXPECT_EQ(said(Job()), "all workers are well");
  EXPECT_EQ(said(Job({kRunning, kStarting})), "1 of 2 ranks starting");
  EXPECT_EQ(said(Job({kRunning, kIdle, kStarting})),
            "none died or hangs; 1 of 3 ranks idle: no change of their metrics for a minute or longer");
  EXPECT_EQ(said(Job({kStarting})), "1 of 1 rank starting");
  EXPECT_EQ(said(Job().LosesValues()), "all workers are well");
  EXPECT_EQ(said(Job().Straggler()), "");
  EXPECT_EQ(said(Job().Loss({})), "");
  EXPECT_EQ(said(Job().Because("died", kDeath)), "");
  EXPECT_EQ(said(Job().Over(JobState::kFinished, 0)), "");
  EXPECT_EQ(said(Job({kExited, kExited}).Worker("trainer", 0, kRunning, "1")), "no rank is up");
  EXPECT_EQ(said(Job(std::vector<WorkerState>()).Worker("launcher", 0, kRunning)), "no rank has started yet");
  // A launcher and a data loader are no ranks.
  EXPECT_EQ(said(Job({kRunning, kRunning}).Worker("launcher", 0, kIdle).Worker("trainer", 0, kIdle, "1")),
            "all workers are well");
}

TEST(SituationOf, IsThatNothingMovesUntilAHangIsJudged) {
  const auto said = [](const Job& job) { return SituationOf(job.Status()); };
  EXPECT_EQ(said(Job().Standstill(15, "")), "no step for 15 s");
  EXPECT_EQ(said(Job().Standstill(15, "each rank is in eval")), "no step for 15 s; each rank is in eval");
  EXPECT_EQ(said(Job().Standstill(15, "", false)), "no step of any trainer for 15 s");
  EXPECT_EQ(said(Job().Standstill(15, "").Loss({})), "no step for 15 s") << "beside a reason";
  EXPECT_EQ(said(Job().Standstill(15, "").Because("died", kDeath)), "no step for 15 s");
  EXPECT_EQ(said(Job().Standstill(90, "").Because("hung", "trainer rep_2 hangs", 2)), "");
  EXPECT_EQ(said(Job().Standstill(90, "").Awaited()), "");
  EXPECT_EQ(said(Job().Standstill(90, "").Over(JobState::kFinished, 0)), "");
  Job without_steps = Job().Standstill(15, "");
  without_steps.ranks.numbers_steps = false;
  EXPECT_EQ(said(without_steps), "no change of a metric for 15 s");
}

TEST(ComparisonOf, IsSaidOnlyIfItIsKnown) {
  using enum WorkerState;
  const auto said = [](const Job& job) { return ComparisonOf(job.Status()); };
  constexpr char kEqual[] = "all ranks are equally fast";
  EXPECT_EQ(said(Job()), kEqual);
  EXPECT_EQ(said(Job().Worker("launcher", 0, kRunning).Worker("trainer", 0, kRunning, "1")), kEqual);
  EXPECT_EQ(said(Job().Measured(16)), "measuring the ranks, 16 of 48 steps");
  EXPECT_EQ(said(Job().Measured(48, true)), "one of the ranks may be slower");
  EXPECT_EQ(said(Job().Straggler()), "rep_3 is slower in data, by 20 % of a step");
  EXPECT_EQ(said(Job().Slowest()), "rep_3 is slower: 2.5 /s, the median is 8.2 /s");
  EXPECT_EQ(said(Job({kRunning})), "") << "one rank";
  EXPECT_EQ(said(Job().Worker("trainer", 3, kDied)), "");
  EXPECT_EQ(said(Job().Worker("trainer", 3, kHung)), "");
  EXPECT_EQ(said(Job().Worker("trainer", 4, kRunning)), "") << "it is not judged";
  EXPECT_EQ(said(Job().Worker("trainer", 3, kExited)), "") << "one that is judged has ended";
  EXPECT_EQ(said(Job().Over(JobState::kFinished, 0).Slowest()), "");
  EXPECT_EQ(said(Job().Over(JobState::kHung, {})), "");
  EXPECT_EQ(said(Job().Standstill(15, "")), "");
  EXPECT_EQ(said(Job().Standing(3).Straggler()), "");
  EXPECT_EQ(said(Job().Awaited()), "");
  Job over = Job().Straggler().Over(JobState::kFailed, 1);
  over.ranks.slowest = {over.ranks.stragglers[0].verdict, seconds(245)};
  EXPECT_EQ(
      said(over),
      "trainer rep_3 was the slowest rank: for 245 s, it was 100 ms longer in data than the others in each step of 500 ms");
  Job job;
  job.ranks.judged.clear();
  EXPECT_EQ(said(job), "") << "without phases";
}

}  // namespace
}  // namespace persia::agent
