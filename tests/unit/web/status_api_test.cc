#include "web/status_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "web/history_fixture.h"
#include "web/status_json.h"

namespace persia::agent {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::system_clock;
using ::testing::IsEmpty;

const system_clock::time_point kNow{seconds(1'000'000)};

AgentStatus Running() {
  AgentStatus status;
  status.version = "0.1.0";
  status.job = "<script>";
  status.push_interval = seconds(1);
  status.gateway = {
      .address = "metrics_gateway:9091", .groups = 2, .format = "text", .pushes = 3, .last_took = microseconds(12'500)};
  return status;
}

TEST(AnswerStatus, DescribesTheAgent) {
  AgentStatus status = Running();
  Json told = Json::parse(AnswerStatus(status, nullptr, kNow).body);
  EXPECT_EQ(told["job"], "<script>");
  EXPECT_EQ(told["now_ms"], 1'000'000'000);
  EXPECT_EQ(
      told["gateway"].dump(),
      R"({"address":"metrics_gateway:9091","groups":2,"format":"text","pushes":3,"failed":0,"last_success_ms":null,"last_success_age_seconds":null,"last_push_seconds":0.0125,"last_error":""})");
  EXPECT_THAT(told["workers"], IsEmpty());
  EXPECT_TRUE(told["history"]["oldest_ms"].is_null());
  status.gateway.last_success = kNow - seconds(5);
  status.gateway.since_success = milliseconds(3500);
  status.gateway.last_error = "refused";
  told = Json::parse(AnswerStatus(status, nullptr, kNow).body);
  EXPECT_EQ(told["gateway"]["last_success_ms"], 999'995'000);
  EXPECT_EQ(told["gateway"]["last_success_age_seconds"], 3.5);
  EXPECT_EQ(told["gateway"]["last_error"], "refused");
}

TEST(AnswerStatus, TellsTheAttemptsOfARunApart) {
  AgentStatus status = Running();
  const auto told = [&] { return Json::parse(AnswerStatus(status, nullptr, kNow).body); };
  EXPECT_TRUE(told()["attempt"].is_null()) << "beside run";
  status.attempt = RunAttempt{.number = 1, .began = kNow, .run_began = kNow};
  EXPECT_EQ(told()["attempt"].dump(), R"({"number":1,"began_ms":1000000000,"run_began_ms":1000000000,"text":""})");
  HealthReport health;
  const auto dead_at = [](ProcessEnd::TimePoint at) { return Process{.end = ProcessEnd{.at = at, .death = Death()}}; };
  health.deaths = std::make_shared<const std::vector<Process>>(
      std::vector<Process>{dead_at(kNow - seconds(1)), dead_at(kNow + seconds(1))});
  status.health = std::make_shared<const HealthReport>(health);
  status.attempt = RunAttempt{.number = 2, .began = kNow, .run_began = kNow - seconds(10)};
  EXPECT_EQ(told()["attempt"]["text"],
            "attempt 2 of the run that began at 1970-01-12 13:46:30 UTC; its counts, deaths and goodput go on");
  EXPECT_TRUE(told()["deaths"][0]["earlier_attempt"]);
  EXPECT_FALSE(told()["deaths"][1]["earlier_attempt"]);
}

TEST(AnswerStatus, WithoutAGatewayTheAddressIsOff) {
  EXPECT_EQ(
      Json::parse(AnswerStatus(AgentStatus(), nullptr, kNow).body)["gateway"].dump(),
      R"({"address":"off","groups":0,"format":"","pushes":0,"failed":0,"last_success_ms":null,"last_success_age_seconds":null,"last_push_seconds":null,"last_error":""})");
}

TEST(AnswerStatus, HasWhoWaitsForWhom) {
  AgentStatus status = Running();
  EXPECT_EQ(Json::parse(AnswerStatus(status, nullptr, kNow).body)["verdicts"].dump(),
            R"({"stragglers":[],"hangs":[],"ranks":[],"judged":[],"text":""})");
  RankReport report;
  const auto rank = [](int number) {
    return Identity{"dlrm", {{"instance", "rep_" + std::to_string(number)}, {"role", "trainer"}}};
  };
  const auto since = std::chrono::system_clock::time_point(seconds(999'000));
  const StragglerJudge::Verdict slow{
      .identity = rank(3), .phase = "data", .seconds_per_step = 0.125, .step_seconds = 0.5, .waiting = 3};
  report.stragglers.push_back({slow, since});
  AwaitedJudge::Verdict awaited{};
  awaited.identity = {"dlrm", {{"instance", "rep_3"}, {"role", "server"}}};
  awaited.phase = "data";
  awaited.in_phase = seconds(94);
  awaited.step = 812;
  awaited.waited = seconds(93);
  awaited.waiting = 3;
  report.awaited.push_back({awaited, since});
  for (int number = 0; number < 20; ++number) {
    report.ranks.push_back({.identity = rank(number), .seconds_per_step = {{"data", 0.25}, {"sync", 20.0 - number}}});
  }
  report.judged = {{.role = "trainer", .ranks = 4, .measured = 12, .needed = 48, .is_undecided = true}};
  status.ranks = std::make_shared<const RankReport>(report);
  const Json verdicts = Json::parse(AnswerStatus(status, nullptr, kNow).body)["verdicts"];
  EXPECT_EQ(
      verdicts["stragglers"][0].dump(),
      R"({"role":"trainer","instance":"rep_3","text":"trainer rep_3: 125 ms longer in data than the others in each step of )"
      R"(500 ms; 3 others wait for it in sync","phase":"data","seconds_per_step":0.125,"step_seconds":0.5,"waiting":3,)"
      R"("since_ms":999000000})");
  EXPECT_EQ(
      verdicts["hangs"][0].dump(),
      R"({"role":"server","instance":"rep_3","text":"server rep_3 hangs in data since step 812, 94 s; 3 others wait in sync. )"
      R"(Look at: its stacks: py-spy dump --pid 0 (Python) or gdb -p 0.",)"
      R"("phase":"data","step":812.0,"waited_seconds":93.0,"waiting":3,"since_ms":999000000})");
  EXPECT_EQ(verdicts["judged"].dump(), R"([{"role":"trainer","ranks":4,"measured":12,"needed":48,"undecided":true}])");
  ASSERT_EQ(verdicts["ranks"].size(), kRanksCompared) << "those that wait least";
  EXPECT_EQ(verdicts["ranks"][0].dump(),
            R"({"role":"trainer","instance":"rep_19","seconds_per_step":{"data":0.25,"sync":1.0}})");
}

TEST(AnswerStatus, OfARoleThatStandsStillThereAreNoStepsAndNoStragglers) {
  AgentStatus status = Running();
  RankReport report;
  for (const char* role : {"server", "trainer"}) {
    const Identity rank{"dlrm", {{"instance", "rep_0"}, {"role", role}}};
    report.ranks.push_back({.identity = rank, .seconds_per_step = {{"sync", 1}}});
    report.stragglers.push_back({{.identity = rank, .phase = "data"}, {}});
  }
  report.standstills = {{"trainer", milliseconds(15500), ""}};
  status.ranks = std::make_shared<const RankReport>(report);
  const Json json = Json::parse(AnswerStatus(status, nullptr, kNow).body);
  ASSERT_EQ(json["verdicts"]["ranks"].size(), 1U);
  EXPECT_EQ(json["verdicts"]["ranks"][0]["role"], "server");
  ASSERT_EQ(json["verdicts"]["stragglers"].size(), 1U);
  EXPECT_EQ(json["verdicts"]["stragglers"][0]["role"], "server");
  EXPECT_EQ(json["health"]["standstill_seconds"], 15.5);
  EXPECT_TRUE(Json::parse(AnswerStatus(Running(), nullptr, kNow).body)["health"]["standstill_seconds"].is_null());
}

TEST(AnswerStatus, HasTheValuesThatAreNoNumbers) {
  AgentStatus status = Running();
  EXPECT_EQ(Json::parse(AnswerStatus(status, nullptr, kNow).body)["not_finite"].dump(), "[]");
  NotFiniteReport report;
  report.values.push_back({.family = "my_app_loss",
                           .identity = {"dlrm", {{"instance", "rep_3"}, {"role", "trainer"}}},
                           .labels = {{"part", "attention"}},
                           .value = "NaN",
                           .since = kNow - seconds(5),
                           .step = 301});
  status.not_finite = std::make_shared<const NotFiniteReport>(report);
  EXPECT_EQ(Json::parse(AnswerStatus(status, nullptr, kNow).body)["not_finite"].dump(),
            R"([{"name":"my_app_loss","value":"NaN","role":"trainer","instance":"rep_3","labels":{"part":"attention"},)"
            R"("step":301.0,"since_ms":999995000}])");
}

TEST(AnswerStatus, TheHistoryIsAsFineAsTheCollectionsForThePage) {
  AgentStatus status = Running();
  status.push_interval = seconds(10);
  status.look_interval = seconds(1);
  const auto step = [&] { return Json::parse(AnswerStatus(status, nullptr, kNow).body)["history"]["step_seconds"]; };
  EXPECT_EQ(step(), 1) << "not as coarse as the pushes";
  status.history.step = milliseconds(2500);
  EXPECT_EQ(step(), 2.5);
}

Process OfRank(uint32_t ordinal, bool alive) {
  return {.ordinal = ordinal, .identity = {"dlrm", {{"instance", "rep_0"}}}, .alive = alive};
}

TEST(AnswerStatus, HasTheStateOfEachWorker) {
  std::vector<Process> processes{OfRank(2, true), OfRank(0, true), OfRank(1, false)};
  processes[1].id.pid = 4711;
  processes[1].last_change = kNow - milliseconds(9500);
  processes[1].phase = "data";
  processes[1].in_phase = seconds(3);
  processes[1].usage = {.cpu_seconds = 1.5, .resident_bytes = 4096, .start_time = 999'000.25};
  processes[1].step = 812;
  processes[2].restarts = 2;
  processes[2].last_exit = "SIGKILL";
  processes[2].phase = "data";
  processes[2].step = 811;
  AgentStatus status = Running();
  status.processes = std::make_shared<const std::vector<Process>>(processes);
  status.throughput = Throughput{.name = "steps_total", .ranks = {{{"", "rep_0"}, 8.5}}};
  HealthReport health;
  const auto since = std::chrono::system_clock::time_point(seconds(999'000));
  health.workers[{"", "rep_0", "0"}] = {WorkerState::kRunning, since};
  health.workers[{"", "rep_0", "2"}] = {WorkerState::kHung, since};
  status.health = std::make_shared<const HealthReport>(health);
  EXPECT_TRUE(Json::parse(AnswerStatus(status, nullptr, kNow).body)["workers"].empty()) << "no collection yet";
  Snapshot newest = *MakeSnapshot({});
  newest.collected_at = kNow - seconds(1);
  const Json workers = Json::parse(AnswerStatus(status, &newest, kNow).body)["workers"];
  ASSERT_EQ(workers.size(), 3U);
  EXPECT_EQ(
      workers[0].dump(),
      R"({"role":"","instance":"rep_0","process":"0","is_rank":true,"up":true,"pid":4711,"restarts":0,)"
      R"("start_time_ms":999000250,"cpu_seconds":1.5,"resident_bytes":4096,"threads":null,"last_change_ms":999990500,"unchanged_seconds":9.5,"throughput":8.5,)"
      R"("state":"running","state_since_ms":999000000,"phase":"data","phase_since_ms":999996000,"step":812.0,"slow":false,"hung":false,)"
      R"("last_exit":""})");
  EXPECT_TRUE(workers[2]["phase"].is_null() && workers[2]["phase_since_ms"].is_null() && workers[2]["step"].is_null());
  EXPECT_TRUE(workers[2]["last_change_ms"].is_null() && workers[2]["unchanged_seconds"].is_null());
  EXPECT_EQ(workers[1]["up"], false);
  EXPECT_EQ(workers[1]["hung"], false) << "the worker has ended";
  EXPECT_EQ(workers[1]["last_exit"], "SIGKILL");
  EXPECT_EQ(workers[1]["restarts"], 2);
  EXPECT_TRUE(workers[1]["pid"].is_null() && workers[1]["cpu_seconds"].is_null());
  EXPECT_TRUE(workers[1]["phase"].is_null() && workers[1]["step"].is_null()) << "the worker has ended";
  EXPECT_EQ(workers[1]["state"], "exited") << "unknown to the report";
  EXPECT_TRUE(workers[2]["throughput"].is_null()) << "of the rank's main process alone";
  EXPECT_EQ(workers[2]["hung"], true);
  EXPECT_EQ(workers[2]["state"], "hung");
}

// Its own metrics may change, for example those of another thread.
TEST(AnswerStatus, ARankThatTheOthersWaitForHangsAsAWorker) {
  AgentStatus status = Running();
  std::vector<Process> processes{OfRank(0, true), OfRank(0, true)};
  processes[1].identity = {"dlrm", {{"instance", "rep_1"}}};
  status.processes = std::make_shared<const std::vector<Process>>(processes);
  HealthReport health;
  health.state = JobState::kRunning;
  for (const char* instance : {"rep_0", "rep_1"}) health.workers[{"", instance, "0"}] = {WorkerState::kRunning, {}};
  status.health = std::make_shared<const HealthReport>(health);
  RankReport report;
  AwaitedJudge::Verdict awaited{};
  awaited.identity = {"dlrm", {{"instance", "rep_1"}}};
  report.awaited.push_back({awaited, std::chrono::system_clock::time_point(seconds(999'000))});
  status.ranks = std::make_shared<const RankReport>(report);
  const auto newest = MakeSnapshot({});
  const Json workers = Json::parse(AnswerStatus(status, newest.get(), kNow).body)["workers"];
  ASSERT_EQ(workers.size(), 2U);
  EXPECT_EQ(workers[0]["state"], "running");
  EXPECT_EQ(workers[1]["state"], "hung");
  EXPECT_EQ(workers[1]["hung"], true);
  EXPECT_EQ(workers[1]["state_since_ms"], 999'000'000);
}

TEST(AnswerStatus, AWorkerThatEndedHasNoThroughput) {
  AgentStatus status = Running();
  status.throughput = Throughput{.name = "steps_total", .ranks = {{{"", "rep_0"}, 8.5}}};
  status.processes = std::make_shared<const std::vector<Process>>(1, OfRank(0, false));
  const auto newest = MakeSnapshot({});
  const Json worker = Json::parse(AnswerStatus(status, newest.get(), kNow).body)["workers"][0];
  EXPECT_TRUE(worker["throughput"].is_null());
}

TEST(AnswerStatus, TheProgressIsNullWhereItIsNotKnown) {
  AgentStatus status = Running();
  EXPECT_TRUE(Json::parse(AnswerStatus(status, nullptr, kNow).body)["progress"].is_null());
  status.progress = Progress{.steps_per_second = 2.5, .step = 812, .planned_steps = 1000};
  const Json progress = Json::parse(AnswerStatus(status, nullptr, kNow).body)["progress"];
  EXPECT_EQ(progress.dump(), R"({"steps_per_second":2.5,"samples_per_second":null,"tokens_per_second":null,)"
                             R"("step":812.0,"planned_steps":1000.0,"remaining_seconds":null})");
}

TEST(AnswerStatus, TheHealthOfTheJobHasItsReasons) {
  AgentStatus status = Running();
  HealthReport health{.state = JobState::kDegraded, .since = kNow - seconds(94), .hang_after = seconds(60)};
  health.reasons = {{"died", "trainer rep_2 died: SIGKILL", WorkerKey{"trainer", "rep_2", "0"}, kNow - seconds(94)}};
  status.health = std::make_shared<const HealthReport>(health);
  const Json told = Json::parse(AnswerStatus(status, nullptr, kNow).body)["health"];
  EXPECT_EQ(told["state"], "degraded");
  EXPECT_EQ(told["since_ms"], 999'906'000);
  EXPECT_EQ(told["hang_after_seconds"], 60);
  EXPECT_TRUE(told["exit_code"].is_null());
  EXPECT_EQ(told["reasons"].dump(),
            R"([{"kind":"died","text":"trainer rep_2 died: SIGKILL","headline":)"
            R"("trainer rep_2 died: SIGKILL","role":"trainer","instance":"rep_2","process":"0","since_ms":999906000}])");
}

TEST(AnswerStatus, PushesThatFailAreNotTheHealthOfTheJob) {
  AgentStatus status = Running();
  HealthReport health;
  health.state = JobState::kRunning;
  status.health = std::make_shared<const HealthReport>(health);
  status.gateway = {.address = "a:9091", .pushes = 9, .last_success = kNow, .since_success = seconds(1)};
  const auto told = [&] { return Json::parse(AnswerStatus(status, nullptr, kNow).body); };
  EXPECT_TRUE(told()["delivery"].is_null());
  status.gateway.last_error = "connection refused";
  EXPECT_TRUE(told()["delivery"].is_null()) << "once";
  status.gateway.since_success = 3 * status.push_interval;
  EXPECT_EQ(told()["delivery"].dump(), R"({"text":"pushes to a:9091 fail: connection refused","since_ms":1000000000})");
  status.gateway.last_error = "a:9091: 65 of 65 groups did not arrive; /metrics/job/dlrm: a:9091: connection refused";
  EXPECT_EQ(told()["delivery"]["text"],
            "pushes to a:9091 fail: 65 of 65 groups did not arrive; /metrics/job/dlrm: connection refused");
  EXPECT_EQ(told()["health"]["state"], "running");
  EXPECT_EQ(told()["health"]["reasons"].size(), 0U);
  status.gateway.last_success.reset();
  EXPECT_TRUE(told()["delivery"]["since_ms"].is_null()) << "no push has arrived yet";
}

}  // namespace
}  // namespace persia::agent
