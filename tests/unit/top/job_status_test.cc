#include "top/job_status.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace persia::agent {
namespace {

std::string Answer(const std::string& more) { return R"({"job": "dlrm", "now_ms": 5000, )" + more + "}"; }

TEST(ParseJobStatus, ReadsAnAgentsAnswer) {
  const auto status = ParseJobStatus(Answer(
      R"("health": {"state": "degraded", "since_ms": 2000, "exit_code": null, "title": "Degraded", "text": "",
                     "reasons": [{"kind": "died", "text": "rep_2 died: SIGKILL; in data", "headline": "rep_2 died: SIGKILL"}]},
         "delivery": {"text": "pushes to gw:9091 fail: refused", "since_ms": null},
         "throughput": {"name": "samples", "now": 12.5, "last_10m": 13, "slowest": null},
         "progress": {"steps_per_second": 1.5, "step": 812, "planned_steps": 10000, "remaining_seconds": null},
         "workers": [{"role": "trainer", "instance": "rep_2", "process": "1", "is_rank": false, "up": false, "state": "died", "state_since_ms": 1000,
                      "restarts": 3, "resident_bytes": null, "last_exit": "SIGKILL"}])"));
  ASSERT_TRUE(status.ok()) << status.error();
  EXPECT_EQ(status.value().state, ShownJobState::kDegraded);
  EXPECT_EQ(status.value().since_ms, 2000);
  EXPECT_EQ(status.value().reasons, (std::vector<std::string>{"rep_2 died: SIGKILL", "pushes to gw:9091 fail: refused"}));
  EXPECT_EQ(status.value().counted, "steps");
  EXPECT_EQ(status.value().per_second, 1.5) << "as the page: of the median rank, and not of all together";
  EXPECT_EQ(status.value().title, "Degraded");
  EXPECT_EQ(status.value().step, 812);
  EXPECT_EQ(status.value().planned_steps, 10000);
  EXPECT_EQ(status.value().remaining_seconds, std::nullopt);
  ASSERT_EQ(status.value().ranks.size(), 1U);
  const Rank& rank = status.value().ranks[0];
  EXPECT_EQ(rank.Name(), "trainer rep_2/1");
  EXPECT_EQ(rank.state, RankState::kDied);
  EXPECT_EQ(rank.restarts, 3U);
  EXPECT_FALSE(rank.is_rank);
  EXPECT_FALSE(status.value().stands_still);
  const auto still = ParseJobStatus(Answer(R"("health": {"state": "running", "standstill_seconds": 15.5}, "workers": [])"));
  EXPECT_TRUE(still.value().stands_still);
  const auto slow = ParseJobStatus(Answer(R"("workers": [{"state": "running", "up": true, "slow": true}])"));
  EXPECT_EQ(slow.value().ranks[0].state, RankState::kSlow);
  EXPECT_EQ(rank.resident_bytes, std::nullopt);
}

TEST(ParseJobStatus, ReadsEachStateByItsName) {
  for (const RankState state :
       {RankState::kDied, RankState::kHung, RankState::kRunning, RankState::kStarting, RankState::kIdle, RankState::kExited}) {
    const auto status = ParseJobStatus(Answer(std::string(R"("workers": [{"state": ")") + ToString(state) + "\"}]"));
    EXPECT_EQ(status.value().ranks[0].state, state);
  }
  for (const ShownJobState state : {ShownJobState::kFailed, ShownJobState::kHung, ShownJobState::kDegraded,
                                    ShownJobState::kRunning, ShownJobState::kWaiting, ShownJobState::kFinished}) {
    const auto status =
        ParseJobStatus(Answer(std::string(R"("health": {"state": ")") + ToString(state) + R"("}, "workers": [])"));
    EXPECT_EQ(status.value().state, state);
  }
  EXPECT_STREQ(ToString(RankState::kExited), "exited");
  EXPECT_STREQ(ToString(ShownJobState::kFinished), "finished");
}

TEST(ParseJobStatus, RefusesAnythingElse) {
  for (const std::string& body :
       {std::string(), std::string("<html>"), std::string("[1]"), std::string("{}"),
        std::string(R"({"now_ms": 1, "workers": 5})"), std::string(R"({"now_ms": 1, "workers": [1]})"),
        std::string(R"({"now_ms": "x", "workers": []})"), std::string(100'000, '[')}) {
    EXPECT_FALSE(ParseJobStatus(body).ok()) << body.substr(0, 40);
  }
}

TEST(ParseJobStatus, IgnoresNonsenseInFields) {
  const auto status = ParseJobStatus(Answer(
      R"("health": 7, "throughput": "x", "progress": {"step": "y"}, "workers": [{"instance": 5, "restarts": -3, "cpu_seconds": "a", "state": "odd", "up": 1}])"));
  ASSERT_TRUE(status.ok()) << status.error();
  EXPECT_EQ(status.value().step, std::nullopt);
  EXPECT_EQ(status.value().ranks[0].restarts, 0U);
  EXPECT_EQ(status.value().ranks[0].cpu_seconds, std::nullopt);
}

}  // namespace
}  // namespace persia::agent
