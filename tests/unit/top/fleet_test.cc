#include "top/fleet.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/http_server.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;

constexpr char kStatus[] = R"({"job": "dlrm", "now_ms": 10000, "workers": [{"instance": "rep_0", "up": true, "cpu_seconds": 3,
                               "start_time_ms": 8000}]})";

std::unique_ptr<HttpServer> Serve(const std::function<ServerResponse()>& answer) {
  auto server = HttpServer::Start({}, {{"GET", "/api/v1/status", [answer](const ServerRequest&) { return answer(); }}});
  EXPECT_TRUE(server.ok());
  return std::move(server).value();
}

Target TargetOf(const HttpServer& server) { return {.name = server.address(), .url = "http://" + server.address()}; }

TEST(Fleet, ShowsAgentsBesideDeadOnesAndLiars) {
  const auto good = Serve([] { return ServerResponse{.body = kStatus}; });
  const auto liar = Serve([] { return ServerResponse{.body = "<html>"}; });
  const auto refuses = Serve([] { return ServerResponse{.status = 401}; });
  const auto large = Serve([] { return ServerResponse{.body = std::string(100'000, ' ')}; });
  Fleet fleet({.timeout = seconds(60), .max_body_bytes = 50'000}, [&] {
    return std::vector<Target>{TargetOf(*good),
                               TargetOf(*liar),
                               TargetOf(*refuses),
                               TargetOf(*large),
                               {.name = "dead", .url = "http://127.0.0.1:1"},
                               {.name = "nothing", .problem = "no agent runs"}};
  });
  fleet.AwaitAnswers(seconds(20));
  const auto views = fleet.Views();
  ASSERT_EQ(views.size(), 6U);
  EXPECT_EQ(views[0].problem, "");
  ASSERT_NE(views[0].status, nullptr);
  EXPECT_EQ(views[0].status->job, "dlrm");
  EXPECT_EQ(views[0].cpus->at(0), 1.5);
  EXPECT_EQ(views[1].problem, "the answer is not a JSON object");
  EXPECT_EQ(views[2].problem, "refused with status 401; give --username and --password-file");
  EXPECT_NE(views[3].problem.find("is larger than"), std::string::npos);
  EXPECT_NE(views[4].problem.find("cannot connect"), std::string::npos) << views[4].problem;
  EXPECT_EQ(views[5].problem, "no agent runs");
}

TEST(Fleet, ASlowAgentDelaysNoOtherAndNoView) {
  std::promise<void> released;
  const std::shared_future<void> release = released.get_future().share();
  const auto slow = Serve([release] {
    release.wait();
    return ServerResponse{.body = kStatus};
  });
  std::promise<void> polled_thrice;
  std::atomic<int> polls = 0;
  const auto good = Serve([&] {
    if (++polls == 3) polled_thrice.set_value();
    return ServerResponse{.body = kStatus};
  });
  {
    Fleet fleet({.interval = std::chrono::milliseconds(1), .timeout = seconds(60)}, [&] {
      return std::vector<Target>{TargetOf(*slow), TargetOf(*good)};
    });
    polled_thrice.get_future().wait();
    // An agent can answer before the fleet lists it.
    while (fleet.Views().size() < 2) std::this_thread::yield();
    const auto views = fleet.Views();
    EXPECT_FALSE(views[0].answered);
    EXPECT_NE(views[1].status, nullptr);
  }  // ends while the request of the slow one is under way
  released.set_value();
}

TEST(Fleet, KeepsTheLastAnswerOfAnAgentThatDied) {
  auto server = Serve([] { return ServerResponse{.body = kStatus}; });
  const Target target = TargetOf(*server);
  Fleet fleet({.interval = std::chrono::milliseconds(1), .timeout = seconds(10)}, [&] { return std::vector<Target>{target}; });
  fleet.AwaitAnswers(seconds(20));
  server.reset();
  while (fleet.Views()[0].problem.empty()) std::this_thread::yield();
  EXPECT_NE(fleet.Views()[0].status, nullptr);
}

}  // namespace
}  // namespace persia::agent
