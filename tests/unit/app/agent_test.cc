// The agent with real workers and real HTTP; the gateway is a list of the pushes that it got.
#include "app/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/manual_clock.h"
#include "job/test_job.h"
#include "net/http_client.h"

namespace persia::agent {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using namespace std::chrono_literals;

// The pushes that arrived, and the answer to the next push.
class ScriptedGateway : public PushGateway {
 public:
  ScriptedGateway() : PushGateway({.address = GatewayAddress::Parse("gateway:9091").value()}) {}
  [[nodiscard]] const PushReport& last_report() const override { return report_; }
  void Interrupt() override {}
  void Rearm() override {}
  void LiftQuarantine() override { ++lifted; }
  Status DeleteGroups(const std::string&, std::chrono::milliseconds) override { return Done{}; }
  void SetGood(bool good) {
    const std::lock_guard lock(mutex_);
    good_ = good;
  }
  // As if each push took this long.
  void SetDuration(std::chrono::duration<double> duration) {
    const std::lock_guard lock(mutex_);
    duration_ = duration;
  }
  // Waits for push number `count`, the first is 1, and gives its text.
  std::string Await(size_t count) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return texts_.size() >= count; });
    return texts_[count - 1];
  }

  Status Push(const Snapshot& snapshot) override {
    std::string text;
    TextRenderer().Render(snapshot, text);
    const std::lock_guard lock(mutex_);
    texts_.push_back(text);
    report_.duration = duration_;
    report_.result = good_ ? PushResult::kSuccess : PushResult::kUnreachable;
    arrived_.notify_all();
    return good_ ? Status(Done{}) : Status(Error{"gateway:9091: connection refused"});
  }

  std::atomic<int> lifted = 0;

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::string> texts_;
  bool good_ = true;
  std::chrono::duration<double> duration_{0};
  PushReport report_;  // the push thread's
};

int Count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) {
    ++found;
  }
  return found;
}

class AgentTest : public ::testing::Test {
 protected:
  AgentTest() {
    setup_.options.job_name = "a job";
    setup_.options.listen_address = "127.0.0.1:0";
    setup_.options.gpu = GpuMode::kOff;  // a reader would be this program
    setup_.version = "1.2.3";
    setup_.directory = job_.directory();
    setup_.run_id = "run";
    setup_.ip_addr = "10.0.0.7";
    setup_.gateway = [this](const AgentOptions& options) {
      made_for_.push_back(options.gateway_address);
      return Pusher::Target{.gateway = options.Pushes() ? gateway_ : nullptr};
    };
    std::filesystem::create_directory(job_.directory());
    std::filesystem::permissions(job_.directory(), std::filesystem::perms::owner_all);
  }
  ~AgentTest() override { SetUpLog(LogLevel::kInfo, LogFormat::kText); }

  Agent& Make() {
    agent_ = std::make_unique<Agent>(setup_, clock_);
    EXPECT_TRUE(agent_->Listen().ok());
    return *agent_;
  }
  // Lets one more tick pass, once the push of the one before is over.
  void Tick() {
    clock_.AwaitWaits(++ticks_);
    while (Get("/api/v1/status").body.find("\"pushes\":" + std::to_string(ticks_) + ",") == std::string::npos) {
    }
    clock_.Advance(10s);
    gateway_->Await(static_cast<size_t>(ticks_) + 1);
  }
  HttpResponse Get(const std::string& path) {
    HttpClient client({.connect_timeout = std::chrono::seconds(100), .total_timeout = std::chrono::seconds(100)});
    return client.Send({.method = "GET", .url = "http://" + agent_->listening_at() + path, .headers = {}, .body = {}}).value();
  }

  TestJob job_;
  ManualClock clock_;
  const std::shared_ptr<ScriptedGateway> gateway_ = std::make_shared<ScriptedGateway>();
  std::vector<std::string> made_for_;
  Agent::Setup setup_;
  std::unique_ptr<Agent> agent_;
  int ticks_ = 0;
};

TEST_F(AgentTest, PushesTheWorkersAndItselfAtOnce) {
  const TestJob::Worker worker(job_, 7, "run");
  setup_.options.labels = {{"team", "ads"}};
  Make().Start();
  const std::string text = gateway_->Await(1);
  EXPECT_THAT(
      text,
      HasSubstr("\nmy_app_batches{job=\"a job\",instance=\"rep_1\",ip_addr=\"10.0.0.7\",role=\"trainer\",team=\"ads\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("job=\"a job\",instance=\"rep_0\",ip_addr=\"10.0.0.7\",role=\"agent\",team=\"ads\""));
  EXPECT_THAT(text, Not(HasSubstr("\nprocess_")));  // those are the gateway's own names
  EXPECT_TRUE(agent_->Finish().ok());
}

TEST_F(AgentTest, LastPushHasTheLastValues) {
  auto worker = std::make_unique<TestJob::Worker>(job_, 1, "run");
  TestJob::Worker late(job_, 0, "run");
  Make().Start();
  gateway_->Await(1);
  worker.reset();  // ended between two ticks: its values stay
  EXPECT_TRUE(agent_->Finish().ok());
  const std::string text = gateway_->Await(2);
  EXPECT_THAT(text, HasSubstr("role=\"trainer\"} 1\n"));
  for (const std::string state : {"live", "ended"}) {
    EXPECT_THAT(text, ContainsRegex("\npersia_agent_segments\\{[^\n]*state=\"" + state + "\"\\} 1\n"));
  }
}

TEST_F(AgentTest, PagesAreReadyAfterTheFirstCollection) {
  const TestJob::Worker worker(job_, 7, "run");
  Make();
  EXPECT_EQ(Get("/-/ready").status, 503);
  agent_->Start();
  gateway_->Await(1);
  clock_.AwaitWaits(1);
  EXPECT_EQ(Get("/-/ready").status, 200);
  EXPECT_EQ(Get("/-/healthy").status, 200);
  const std::string metrics = Get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("role=\"trainer\"} 7\n"));
  EXPECT_THAT(metrics, HasSubstr("\nprocess_resident_memory_bytes{"));
  const std::string status = Get("/api/v1/status").body;
  EXPECT_THAT(status, HasSubstr("\"job\":\"a job\""));
  EXPECT_THAT(status, HasSubstr("\"address\":\"gateway:9091\""));
  EXPECT_THAT(status, HasSubstr("\"live\":1,\"ended\":0"));
  EXPECT_THAT(Get("/").body, HasSubstr("<!DOCTYPE html>"));
  EXPECT_TRUE(agent_->Finish().ok());
}

TEST_F(AgentTest, ScrapeCollectsAnewWhatIsOlderThanASecond) {
  TestJob::Worker worker(job_, 7, "run");
  Make().Start();
  gateway_->Await(1);
  clock_.AwaitWaits(1);
  worker.End();
  EXPECT_THAT(Get("/api/v1/status").body, HasSubstr("\"live\":1,\"ended\":0"));
  clock_.Advance(1001ms);
  Get("/metrics");
  EXPECT_THAT(Get("/api/v1/status").body, HasSubstr("\"live\":0,\"ended\":1"));
  EXPECT_TRUE(agent_->Finish().ok());
}

TEST_F(AgentTest, IsUnhealthyWhenCollectingIsStuck) {
  Make();
  EXPECT_EQ(Get("/-/healthy").status, 503);  // it never began
}

TEST_F(AgentTest, GatewaysStateIsLoggedOncePerChange) {
  ::testing::internal::CaptureStderr();
  gateway_->SetGood(false);
  Make().Start();
  gateway_->Await(1);
  Tick();
  gateway_->SetGood(true);
  Tick();
  Tick();
  EXPECT_TRUE(agent_->Finish().ok());
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(Count(log, "warning: cannot push to gateway:9091: connection refused"), 1) << log;
  EXPECT_EQ(Count(log, "info: pushing to gateway:9091"), 1) << log;
}

TEST_F(AgentTest, AReloadMakesTheGatewayAnewIfItsSettingsHaveChanged) {
  Make().Start();
  gateway_->Await(1);
  AgentOptions fresh = setup_.options;
  fresh.log_level = LogLevel::kWarning;
  agent_->Reconfigure(fresh);
  EXPECT_THAT(made_for_, SizeIs(1));
  EXPECT_EQ(gateway_->lifted, 1) << "it may accept now what it refused";
  fresh.push_timeout *= 2;
  agent_->Reconfigure(fresh);
  EXPECT_THAT(made_for_, SizeIs(2));
  fresh.gateway_address = "off";
  agent_->Reconfigure(fresh);
  EXPECT_THAT(made_for_, ElementsAre("metrics_gateway:9091", "metrics_gateway:9091", "off"));
  EXPECT_THAT(Get("/api/v1/status").body, HasSubstr("\"address\":\"off\""));
  EXPECT_TRUE(agent_->Finish().ok());
}

TEST_F(AgentTest, SlowPushesAreSaidOncePerChange) {
  ::testing::internal::CaptureStderr();
  gateway_->SetDuration(11s);
  Make().Start();
  gateway_->Await(1);
  Tick();
  gateway_->SetDuration(1s);
  Tick();
  Tick();
  EXPECT_TRUE(agent_->Finish().ok());
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(Count(log, "take longer than the push interval"), 1) << log;
  EXPECT_EQ(Count(log, "take less than the push interval again"), 1) << log;
}

TEST_F(AgentTest, SaysWhereWorkersAreLookedForAfterThreeTicks) {
  ::testing::internal::CaptureStderr();
  Make().Start();
  for (int tick = 1; tick <= 5; ++tick) {
    Tick();
  }
  EXPECT_TRUE(agent_->Finish().ok());
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string line = "PERSIA_METRICS_DIR=" + job_.directory();
  ASSERT_THAT(log, HasSubstr(line));
  EXPECT_EQ(log.find(line), log.rfind(line));
}

TEST_F(AgentTest, IsIdleOnceTheLastWorkerHasEndedForLongEnough) {
  std::atomic<int> idle = 0;
  setup_.idle_limit = 20s;
  setup_.on_idle = [&] { ++idle; };
  TestJob::Worker worker(job_, 7, "run");
  Make().Start();
  gateway_->Await(1);
  Tick();
  worker.End();
  Tick();  // notices the end
  Tick();
  EXPECT_EQ(idle, 0);
  for (int tick = 0; tick < 3; ++tick) {
    Tick();
  }
  EXPECT_EQ(idle, 1);
  EXPECT_TRUE(agent_->Finish().ok());
}

TEST_F(AgentTest, AddressThatCannotBeHadIsAnError) {
  Make();
  setup_.options.listen_address = agent_->listening_at();
  setup_.options.listen_address_is_default = false;
  Agent second(setup_, clock_);
  const Status status = second.Listen();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), HasSubstr(agent_->listening_at()));
  setup_.options.listen_address_is_default = true;
  Agent third(setup_, clock_);
  EXPECT_TRUE(third.Listen().ok());
  EXPECT_NE(third.listening_at(), agent_->listening_at());
}

TEST_F(AgentTest, ServesNothingIfToldSo) {
  setup_.options.listen_address = "";
  Make();
  EXPECT_EQ(agent_->listening_at(), "");
}

}  // namespace
}  // namespace persia::agent
