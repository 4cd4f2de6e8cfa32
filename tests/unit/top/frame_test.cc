#include "top/frame.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

AgentView Running(const std::string& name, const std::vector<std::string>& instances) {
  JobStatus status{.job = name, .now_ms = 1'000'000, .since_ms = 808'000};
  for (const std::string& instance : instances) {
    status.ranks.push_back({.role = "trainer", .instance = instance, .since_ms = 990'000, .resident_bytes = 512 << 20});
  }
  return {.name = name,
          .status = std::make_shared<JobStatus>(status),
          .cpus = std::make_shared<std::vector<std::optional<double>>>(instances.size(), 1.5),
          .answered = true};
}

AgentView Degraded() {
  AgentView view = Running("dlrm", {"rep_10", "rep_2", "rep_1"});
  JobStatus status = *view.status;
  status.state = ShownJobState::kDegraded;
  status.reasons = {"trainer rep_10 died: SIGKILL"};
  status.ranks[0].state = RankState::kDied;
  status.ranks[0].last_exit = "SIGKILL";
  status.ranks[0].restarts = 2;
  view.status = std::make_shared<JobStatus>(status);
  return view;
}

std::vector<AgentView> Three() {
  return {
      Running("bert", {"rep_0"}), Degraded(), {.name = "10.0.0.9:19091", .problem = "connection refused", .answered = true}};
}

std::string TextOf(const Frame& frame) {
  std::string text;
  for (const FrameLine& line : frame.lines) text += line.text.substr(0, line.text.find_last_not_of(' ') + 1) + '\n';
  return text;
}

std::string Once(const TopView& view) { return TextOf(BuildFrame(Three(), view, {.height = 0})); }

TEST(BuildFrame, ShowsTheWorstFirst) {
  EXPECT_EQ(Once({}),
            R"(top  3 jobs: 1 no answer, 1 degraded, 1 running  3/4 ranks up  by state
RANK                           STATE    SINCE   MEMORY    CPU RESTARTS LAST EXIT
10.0.0.9:19091  NO ANSWER  connection refused
dlrm  DEGRADED 3m12s  trainer rep_10 died: SIGKILL
  trainer rep_10               died       10s  512 MiB   150%        2 SIGKILL
  trainer rep_1                running    10s  512 MiB   150%        0 -
  trainer rep_2                running    10s  512 MiB   150%        0 -
bert  RUNNING 3m12s
  trainer rep_0                running    10s  512 MiB   150%        0 -
)");
}

TEST(BuildFrame, AJobHasTheAddressOfItsPage) {
  AgentView view = Running("dlrm", {});
  view.url = "http://127.0.0.1:19091";
  EXPECT_EQ(BuildFrame({view}, {}, {.height = 0}).lines[2].text, "dlrm (http://127.0.0.1:19091/)  RUNNING 3m12s");
  view.name = "10.0.0.7:19091";
  view.url.clear();
  EXPECT_EQ(BuildFrame({view}, {}, {.height = 0}).lines[2].text, "dlrm (10.0.0.7:19091)  RUNNING 3m12s");
}

TEST(BuildFrame, WithoutAJobItSaysWhatToDo) {
  EXPECT_EQ(TextOf(BuildFrame({}, {}, {.width = 90, .height = 0})),
            R"(top  0 jobs  0/0 ranks up  by state
RANK                                     STATE    SINCE   MEMORY    CPU RESTARTS LAST EXIT
no job of this user runs on this machine
persia-metrics-agent exec -- COMMAND starts one; top HOST:PORT shows those of an agent
)");
}

TEST(BuildFrame, JobsThatEndedAreLastAndTheWorstIsFirst) {
  const auto in_state = [](ShownJobState state, const std::string& title, std::vector<std::string> reasons = {}) {
    AgentView view = Running(title, {});
    JobStatus status = *view.status;
    status.state = state;
    status.title = title;
    status.reasons = std::move(reasons);
    view.status = std::make_shared<JobStatus>(status);
    return view;
  };
  AgentView ended = in_state(ShownJobState::kFailed, "Failed, exit 1");
  ended.name = "a";
  ended.ended = true;
  ended.problem = "no agent and no process of it runs";
  AgentView running = in_state(ShownJobState::kRunning, "Running");
  JobStatus well = *running.status;
  well.text = "all workers are well";
  running.status = std::make_shared<JobStatus>(well);
  AgentView still = running;
  well.text = "no step for 15 s";
  well.stands_still = true;
  still.status = std::make_shared<JobStatus>(well);
  const std::vector<AgentView> agents = {
      ended,
      in_state(ShownJobState::kFinished, "Finished, exit 0"),
      in_state(ShownJobState::kWaiting, "Waiting"),
      running,
      still,
      in_state(ShownJobState::kRunning, "Running", {"loss is NaN on trainer rep_3, since step 301"}),
      in_state(ShownJobState::kDegraded, "Degraded"),
      {.name = "c:19091", .problem = "connection refused", .answered = true},
      in_state(ShownJobState::kHung, "Hung"),
      in_state(ShownJobState::kFailed, "Failed, exit 3", {"trainer rep_1 died: SIGSEGV"}),
  };
  EXPECT_EQ(
      TextOf(BuildFrame(agents, {}, {.width = 130, .height = 0})),
      R"(top  10 jobs: 1 failed, 1 hung, 1 no answer, 1 degraded, 3 running, 1 waiting, 1 finished, 1 ended  0/0 ranks up  by state
RANK                                     STATE    SINCE   MEMORY    CPU RESTARTS LAST EXIT
Failed, exit 3  FAILED, EXIT 3 3m12s  trainer rep_1 died: SIGSEGV
Hung  HUNG 3m12s
c:19091  NO ANSWER  connection refused
Degraded  DEGRADED 3m12s
Running  RUNNING 3m12s  no step for 15 s
Running  RUNNING 3m12s  loss is NaN on trainer rep_3, since step 301
Running  RUNNING 3m12s  all workers are well
Waiting  WAITING 3m12s
Finished, exit 0  FINISHED, EXIT 0 3m12s
Failed, exit 1 (a)  ENDED  no agent and no process of it runs
)");
}

TEST(BuildFrame, ALauncherIsNoRank) {
  AgentView view = Running("dlrm", {"rep_0", "rep_1"});
  JobStatus status = *view.status;
  status.ranks.push_back({.role = "launcher", .instance = "rep_0", .is_rank = false});
  view.status = std::make_shared<JobStatus>(status);
  const std::string text = TextOf(BuildFrame({view}, {}, {.height = 0}));
  EXPECT_NE(text.find("2/2 ranks up"), std::string::npos) << text;
  EXPECT_NE(text.find("launcher rep_0"), std::string::npos) << text;
}

TEST(BuildFrame, ShowsTheProgress) {
  const auto banner = [](std::optional<double> step, std::optional<double> planned, std::optional<double> remaining) {
    AgentView view = Running("dlrm", {"rep_0"});
    JobStatus status = *view.status;
    status.step = step;
    status.planned_steps = planned;
    status.remaining_seconds = remaining;
    view.status = std::make_shared<JobStatus>(status);
    const std::string text = TextOf(BuildFrame({view}, {}, {.height = 0}));
    const size_t begin = text.find("dlrm");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(banner(812, 10'000, 3800), "dlrm  RUNNING 3m12s  step 812 of 10.0k, 1h03m left");
  EXPECT_EQ(banner(812, 10'000, 1e300), "dlrm  RUNNING 3m12s  step 812 of 10.0k");
  EXPECT_EQ(banner(812, std::nullopt, std::nullopt), "dlrm  RUNNING 3m12s  step 812");
  EXPECT_EQ(banner(std::nullopt, std::nullopt, std::nullopt), "dlrm  RUNNING 3m12s");
}

TEST(BuildFrame, SortsRanksNaturally) {
  const std::string text = Once({.sort = SortKey::kName});
  EXPECT_LT(text.find("\n  trainer rep_2 "), text.find("\n  trainer rep_10 "));
  const std::string reversed = Once({.sort = SortKey::kName, .reverse = true});
  EXPECT_GT(reversed.find("\n  trainer rep_2 "), reversed.find("\n  trainer rep_10 "));
}

TEST(BuildFrame, Filters) {
  const std::string text = Once({.filter = "REP_1"});
  EXPECT_NE(text.find("rep_10 "), std::string::npos);
  EXPECT_EQ(text.find("rep_2 "), std::string::npos);
  EXPECT_EQ(text.find("bert"), std::string::npos);
  EXPECT_NE(Once({.filter = "nothing"}).find("nothing matches"), std::string::npos);
}

TEST(BuildFrame, ShowsOneJob) {
  const std::string text = Once({.only = "bert"});
  EXPECT_NE(text.find("bert"), std::string::npos);
  EXPECT_EQ(text.find("dlrm"), std::string::npos);
}

TEST(BuildFrame, FitsAnyScreen) {
  for (const size_t width : {1U, 5U, 12U, 40U, 80U, 300U}) {
    for (const size_t height : {1U, 2U, 3U, 4U, 5U, 24U}) {
      for (const bool help : {false, true}) {
        const Frame frame = BuildFrame(Three(), {.selected = 99, .help = help}, {.width = width, .height = height});
        EXPECT_LE(frame.lines.size(), height);
        for (const FrameLine& line : frame.lines) EXPECT_LE(ColumnsOf(line.text), width) << line.text;
      }
    }
  }
}

TEST(BuildFrame, ScrollsToTheSelectedLine) {
  std::vector<std::string> instances;
  for (int i = 0; i < 100; ++i) instances.push_back("rep_" + std::to_string(i));
  const Frame frame = BuildFrame({Running("dlrm", instances)}, {.selected = 70}, {.height = 10});
  EXPECT_EQ(frame.rows.size(), 101U);
  EXPECT_NE(TextOf(frame).find("rep_69 "), std::string::npos);
  EXPECT_EQ(TextOf(frame).find("rep_2 "), std::string::npos);
}

}  // namespace
}  // namespace persia::agent
