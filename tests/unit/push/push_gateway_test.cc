// Against a peer that misbehaves.
#include "push/push_gateway.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "captured_log.h"
#include "net/http_server.h"
#include "peers/scripted_peer.h"
#include "peers/socket.h"
#include "push/ledger_directory.h"
#include "push/snapshots.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

class PushGatewayTest : public ::testing::Test {
 protected:
  // Time passes in pauses only.
  [[nodiscard]] PushGateway::Options Options(const std::string& address) {
    return {.address = GatewayAddress::Parse(address).value(),
            .now = [this] { return now_; },
            .sleep =
                [this](milliseconds pause) {
                  now_ += pause;
                  pauses_.push_back(pause);
                  return true;
                }};
  }
  // Groups a, b, c.
  static Snapshot ThreeGroups() {
    return Snap({{"a", {}}, {"b", {}}, {"c", {}}},
                {{"x", MetricType::kGauge, 1, 0}, {"x", MetricType::kGauge, 2, 1}, {"x", MetricType::kGauge, 3, 2}});
  }
  static Snapshot OneGroup() { return Snap({{"a", {}}}, {{"x", MetricType::kGauge, 1}}); }
  // The jobs that were pushed, in order.
  static std::vector<std::string> Jobs(const ScriptedPeer& peer) {
    std::vector<std::string> jobs;
    for (const std::string& request : peer.requests()) jobs.push_back(request.substr(17, request.find(" HTTP") - 17));
    return jobs;
  }

  std::chrono::steady_clock::time_point now_{1h};
  std::vector<milliseconds> pauses_;
};

TEST_F(PushGatewayTest, PutsTheTextOfEachGroup) {
  ScriptedPeer peer({Reply::Status(202)});
  PushGateway sink(Options(peer.address()));
  ASSERT_TRUE(sink.Push(ThreeGroups()).ok());
  EXPECT_THAT(Jobs(peer), ElementsAre("a", "b", "c"));
  EXPECT_THAT(peer.requests().at(1), AllOf(HasSubstr("PUT /metrics/job/b HTTP/1.1\r\n"),
                                           HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
                                           EndsWith("\r\n\r\n# HELP x Helps.\n# TYPE x gauge\nx 2\n")));
  const PushReport& report = sink.last_report();
  EXPECT_EQ(report.result, PushResult::kSuccess);
  EXPECT_EQ(report.groups, 3U);
  EXPECT_EQ(report.groups_failed, 0U);
  EXPECT_EQ(report.requests, 3U);
  EXPECT_EQ(report.bytes, 3 * std::string("# HELP x Helps.\n# TYPE x gauge\nx 2\n").size());
  EXPECT_EQ(report.http_status, 202);
}

TEST_F(PushGatewayTest, TheLabelAgentIsOnceInTheGroupingKey) {
  ScriptedPeer peer({Reply::Status(202)});
  LedgerDirectory directory;
  GroupLedger ledger(directory.Options());
  ledger.AddAgentLabel();
  PushGateway::Options options = Options(peer.address());
  options.ledger = &ledger;
  PushGateway sink(std::move(options));
  // One collection from before the decision to add the label, and one from after it.
  for (const Identity& identity : {Identity{"a", {}}, Identity{"a", {{"agent", ledger.agent_id()}}}}) {
    ASSERT_TRUE(sink.Push(Snap({identity}, {{"x", MetricType::kGauge, 1}})).ok());
    EXPECT_THAT(peer.requests().back(), HasSubstr("PUT /metrics/job/a/agent/" + ledger.agent_id() + " HTTP/1.1\r\n"));
  }
}

// An agent that is killed at any moment leaves no group of which its successor knows nothing.
TEST_F(PushGatewayTest, AGatewayHasOnlyGroupsThatAreInTheLedgerOnDisk) {
  LedgerDirectory directory;
  std::mutex mutex;
  std::vector<std::string> seen;  // method and job of each request, and the jobs on disk when it came
  const auto note = [&](const ServerRequest& request) -> std::optional<ServerResponse> {
    const std::lock_guard lock(mutex);
    seen.push_back(request.method + ' ' + request.path.substr(request.path.rfind('/') + 1) + ':');
    for (const auto& group : GroupLedger(directory.Options()).groups()) seen.back() += ' ' + group.identity.job;
    return ServerResponse{.status = 202};
  };
  const auto server = HttpServer::Start({.guard = note}, {});
  ASSERT_TRUE(server.ok()) << server.error();
  GroupLedger ledger(directory.Options());
  PushGateway::Options options = Options(server.value()->address());
  options.ledger = &ledger;
  options.delete_absent_groups = true;
  PushGateway sink(std::move(options));
  ASSERT_TRUE(sink.Push(OneGroup()).ok());
  ASSERT_TRUE(sink.Push(ThreeGroups()).ok());
  ASSERT_TRUE(sink.DeleteGroups("b", 10s).ok());
  const std::lock_guard lock(mutex);
  EXPECT_THAT(seen, ElementsAre("PUT a: a", "PUT a: a b c", "PUT b: a b c", "PUT c: a b c", "DELETE b: a b c"));
  EXPECT_THAT(GroupLedger(directory.Options()).groups(), SizeIs(2));
}

TEST_F(PushGatewayTest, NothingToShowIsNothingToPush) {
  ScriptedPeer peer({Reply::Status(500)});
  PushGateway sink(Options(peer.address()));
  EXPECT_TRUE(sink.Push(Snap({}, {})).ok());
  EXPECT_TRUE(sink.Push(Snap({{"a", {}}}, {})).ok());
  EXPECT_THAT(peer.requests(), IsEmpty());
  EXPECT_EQ(sink.last_report().groups, 0U);
}

TEST_F(PushGatewayTest, ThePathPrefixIsKept) {
  ScriptedPeer peer({Reply::Status(200)});
  PushGateway sink(Options("http://" + peer.address() + "/push/"));
  ASSERT_TRUE(sink.Push(OneGroup()).ok());
  EXPECT_THAT(peer.requests().at(0), HasSubstr("PUT /push/metrics/job/a HTTP/1.1\r\n"));
}

TEST_F(PushGatewayTest, TransientFailuresAreRetriedWithBackoff) {
  ScriptedPeer peer({Reply::Status(500), Reply::Status(429), Reply::Close(), Reply::Status(503), Reply::Status(200)});
  PushGateway sink(Options(peer.address()));
  const Status status = sink.Push(OneGroup());
  EXPECT_TRUE(status.ok()) << status.error();
  EXPECT_EQ(sink.last_report().requests, pauses_.size() + 1);
  ASSERT_THAT(pauses_, SizeIs(Ge(3U)));
  milliseconds longest = 100ms;
  for (milliseconds pause : pauses_) {
    EXPECT_THAT(pause, AllOf(Ge(longest / 2), Le(longest)));
    longest *= 2;
  }
}

TEST_F(PushGatewayTest, PausesAreJittered) {
  ScriptedPeer peer({Reply::Status(500)});
  PushGateway::Options options = Options(peer.address());
  options.first_pause = options.longest_pause = 1000ms;
  options.time_budget = 60s;
  PushGateway sink(std::move(options));
  ASSERT_FALSE(sink.Push(OneGroup()).ok());
  EXPECT_THAT(pauses_, AllOf(SizeIs(Ge(50U)), Each(AllOf(Ge(500ms), Le(1000ms)))));
  EXPECT_THAT(pauses_, Not(Each(pauses_.front())));
}

TEST_F(PushGatewayTest, TheTimeBudgetEndsThePush) {
  ScriptedPeer peer({Reply::Status(503, "too busy")});
  PushGateway::Options options = Options(peer.address());
  options.time_budget = 3s;
  PushGateway sink(std::move(options));
  const auto begin = now_;
  const Status status = sink.Push(ThreeGroups());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error(), peer.address() + ": 3 of 3 groups did not arrive; /metrics/job/a: status 503: too busy");
  EXPECT_LE(now_ - begin, 3s);
  EXPECT_EQ(sink.last_report().result, PushResult::kServerError);
  EXPECT_EQ(sink.last_report().groups_failed, 3U);
}

TEST_F(PushGatewayTest, ARefusalIsFinalAndQuoted) {
  const std::pair<int, std::string> refusals[] = {
      {403, ""},
      {404, "; gateway_address must be the address of a PushGateway, without /metrics"},
      {405, "; gateway_address must be the address of a PushGateway, without /metrics"},
      {413, "; raise the limit of that server (in nginx, client_max_body_size)"}};
  for (const auto& [refusal, remedy] : refusals) {
    ScriptedPeer peer({Reply::Status(refusal, "line one\nline two\n")});
    PushGateway sink(Options(peer.address()));
    const Status status = sink.Push(OneGroup());
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error(), EndsWith("status " + std::to_string(refusal) + ": line one line two" + remedy));
    EXPECT_THAT(peer.requests(), SizeIs(1));
    EXPECT_EQ(sink.last_report().result, PushResult::kRejected);
    EXPECT_EQ(sink.last_report().http_status, refusal);
  }
}

// As a proxy in front of the gateway does.
TEST_F(PushGatewayTest, AGroupThatAServerFindsTooLargeArrivesWithoutItsLargestFamily) {
  CapturedLog log;
  ScriptedPeer peer({Reply::Status(413), Reply::Status(200)});
  PushGateway::Options options = Options(peer.address());
  options.quarantine_retry = 1h;
  PushGateway sink(std::move(options));
  std::vector<Sample> samples;
  for (int i = 0; i < 2000; ++i) {
    samples.push_back({"large", MetricType::kGauge, 1, 0, {{"label", std::to_string(i) + std::string(50, 'x')}}});
  }
  samples.push_back({"small", MetricType::kGauge, 1});
  const Snapshot group = Snap({{"a", {}}}, samples);
  ASSERT_TRUE(sink.Push(group).ok());
  EXPECT_EQ(sink.last_report().dropped_series, 2000U);
  EXPECT_THAT(log.Warnings(), ElementsAre(AllOf(HasSubstr("\"large\" (2000 series"), HasSubstr("(status 413)"))));
  ASSERT_TRUE(sink.Push(group).ok());
  now_ += 1h;
  ASSERT_TRUE(sink.Push(group).ok());
  const auto has_large = HasSubstr("\nlarge{");
  const auto has_small = HasSubstr("\nsmall 1\n");
  EXPECT_THAT(peer.requests(), ElementsAre(AllOf(has_large, has_small), AllOf(Not(has_large), has_small),
                                           AllOf(Not(has_large), has_small), AllOf(has_large, has_small)));
  EXPECT_EQ(sink.last_report().dropped_series, 0U);
}

TEST_F(PushGatewayTest, ARedirectIsNamed) {
  for (int status : {301, 302, 307, 308}) {
    const std::string line = "HTTP/1.1 " + std::to_string(status) + " Moved\r\nContent-Length: 5\r\nConnection: close\r\n";
    ScriptedPeer peer({Reply::Raw(line + "Location: https://gateway.example/metrics/job/a?secret\r\n\r\n<html")});
    PushGateway sink(Options(peer.address()));
    const Status pushed = sink.Push(OneGroup());
    ASSERT_FALSE(pushed.ok());
    EXPECT_THAT(pushed.error(), EndsWith("status " + std::to_string(status) +
                                         ": it redirects to https://gateway.example:443, which is not followed; set "
                                         "gateway_address to where it accepts pushes"));
    EXPECT_THAT(peer.requests(), SizeIs(1));
    EXPECT_EQ(sink.last_report().result, PushResult::kRejected);
  }
}

TEST_F(PushGatewayTest, IfAGroupIsRefusedWithoutItsFamiliesTheyAreNotTheReason) {
  ScriptedPeer peer({Reply::Status(400, "who are you?")});
  PushGateway sink(Options(peer.address()));
  const Status status = sink.Push(OneGroup());
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), EndsWith("status 400: who are you?"));
  EXPECT_THAT(peer.requests(), ElementsAre(HasSubstr("PUT /"), HasSubstr("POST /")));
  EXPECT_EQ(sink.last_report().quarantined_series, 0U);
  EXPECT_EQ(sink.last_report().result, PushResult::kRejected);
}

// An answer that asks for a pause.
Reply AskingToWait(int status, const std::string& retry_after) {
  return Reply::Raw("HTTP/1.1 " + std::to_string(status) + " Busy\r\nRetry-After: " + retry_after +
                    "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

TEST_F(PushGatewayTest, RetryAfterIsKeptIfThereIsTime) {
  for (int status : {429, 503}) {
    pauses_.clear();
    ScriptedPeer peer({AskingToWait(status, "7"), Reply::Status(200)});
    PushGateway sink(Options(peer.address()));
    EXPECT_TRUE(sink.Push(ThreeGroups()).ok());
    EXPECT_THAT(pauses_, ElementsAre(AllOf(Ge(7s), Le(8s))));
    EXPECT_THAT(peer.requests(), SizeIs(4));  // the others were not tried before
  }
}

TEST_F(PushGatewayTest, ARetryAfterLongerThanThePushDefersTheNextPushes) {
  ScriptedPeer peer({AskingToWait(503, "60"), Reply::Status(200)});
  CapturedLog log;
  PushGateway sink(Options(peer.address()));
  EXPECT_FALSE(sink.Push(ThreeGroups()).ok());
  EXPECT_EQ(sink.last_report().result, PushResult::kServerError);
  now_ += 10s;
  for (int i = 0; i < 3; ++i) {
    const Status status = sink.Push(ThreeGroups());
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error(), HasSubstr("asked for a pause (Retry-After) of another 51 s"));
    EXPECT_EQ(sink.last_report().result, PushResult::kDeferred);
  }
  EXPECT_THAT(peer.requests(), SizeIs(1));
  EXPECT_THAT(log.Warnings(), ElementsAre(HasSubstr("nothing is pushed for 60 s")));
  now_ += 47s;  // 3 s are left: that fits
  EXPECT_TRUE(sink.Push(ThreeGroups()).ok());
  EXPECT_THAT(pauses_, ElementsAre(3s));
  EXPECT_THAT(peer.requests(), SizeIs(4));
}

TEST_F(PushGatewayTest, RetryAfterMayBeADate) {
  ScriptedPeer peer({AskingToWait(503, "Fri, 31 Dec 2099 23:59:59 GMT")});
  PushGateway::Options options = Options(peer.address());
  options.longest_retry_after = 600s;
  PushGateway sink(std::move(options));
  EXPECT_FALSE(sink.Push(OneGroup()).ok());
  now_ += 590s;
  EXPECT_THAT(sink.Push(OneGroup()).error(), HasSubstr("asked for a pause"));
  now_ += 11s;
  EXPECT_THAT(sink.Push(OneGroup()).error(), Not(HasSubstr("nothing was pushed")));
  EXPECT_THAT(peer.requests(), SizeIs(2));
}

TEST_F(PushGatewayTest, ALongRefusalIsShortenedBetweenCharacters) {
  std::string body = "x";
  for (int i = 0; i < 1000; ++i) body += "ü";
  ScriptedPeer peer({Reply::Status(403, body)});
  PushGateway sink(Options(peer.address()));
  const Status status = sink.Push(OneGroup());
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), EndsWith("ü..."));
  EXPECT_THAT(status.error().size(), Le(600U));
}

TEST_F(PushGatewayTest, AGroupThatFailsDoesNotStopTheOthers) {
  ScriptedPeer peer({Reply::Status(500), Reply::Status(200), Reply::Status(413), Reply::Status(200)});
  PushGateway sink(Options(peer.address()));
  const Status status = sink.Push(ThreeGroups());
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(Jobs(peer), ElementsAre("a", "b", "c", "a"));
  EXPECT_THAT(status.error(), HasSubstr("1 of 3 groups did not arrive; /metrics/job/c: status 413"));
}

TEST_F(PushGatewayTest, AGroupWithoutAnAnswerLetsTheOthersGoFirst) {
  ScriptedPeer peer({Reply::Raw("not HTTP\r\n"), Reply::Status(200)});
  PushGateway sink(Options(peer.address()));
  EXPECT_TRUE(sink.Push(ThreeGroups()).ok());
  EXPECT_THAT(Jobs(peer), ElementsAre("a", "b", "c", "a"));
}

TEST_F(PushGatewayTest, APushBeginsWithTheGroupsThatTheLastOneDidNotComeTo) {
  ScriptedPeer peer({Reply::Raw("not HTTP\r\n"), Reply::Status(200)});
  PushGateway::Options options = Options(peer.address());
  options.first_pause = options.longest_pause = 60s;  // longer than the budget: one round
  PushGateway sink(std::move(options));
  const Status status = sink.Push(ThreeGroups());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(sink.last_report().groups_failed, 3U);
  EXPECT_TRUE(sink.Push(ThreeGroups()).ok());
  EXPECT_TRUE(sink.Push(ThreeGroups()).ok());
  EXPECT_THAT(Jobs(peer), ElementsAre("a", "b", "c", "a", "a", "b", "c"));
}

TEST_F(PushGatewayTest, APeerWithoutAnAnswerIsUnreachable) {
  for (const Reply& reply : {Reply::Silence(), Reply::Close(), Reply::Raw("\x16\x03\x01 what?\r\n")}) {
    ScriptedPeer peer({reply});
    PushGateway::Options options = Options(peer.address());
    options.http.total_timeout = 50ms;
    options.time_budget = 200ms;
    PushGateway sink(std::move(options));
    const Status status = sink.Push(OneGroup());
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error(), HasSubstr("1 of 1 groups did not arrive; /metrics/job/a: " + peer.address() + ": "));
    EXPECT_EQ(sink.last_report().result, PushResult::kUnreachable);
    EXPECT_EQ(sink.last_report().http_status, 0);
    EXPECT_GE(sink.last_report().requests, 2U);
  }
}

TEST_F(PushGatewayTest, ARequestGetsNoMoreTimeThanThePushHas) {
  ScriptedPeer peer({Reply::Silence()});
  PushGateway::Options options = Options(peer.address());
  options.http.total_timeout = 600s;
  options.time_budget = options.first_pause = options.longest_pause = 100ms;
  PushGateway sink(std::move(options));
  EXPECT_THAT(sink.Push(OneGroup()).error(), ::testing::ContainsRegex(" within 0\\.[01]"));
}

TEST_F(PushGatewayTest, InterruptEndsAPause) {
  ScriptedPeer peer({Reply::Status(503)});
  PushGateway sink({.address = GatewayAddress::Parse(peer.address()).value(),
                    .time_budget = 3600s,
                    .first_pause = 1200s,
                    .longest_pause = 1200s});
  std::thread interrupter([&] {
    peer.WaitForRequests(1);
    sink.Interrupt();
  });
  const Status status = sink.Push(ThreeGroups());
  interrupter.join();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), HasSubstr("interrupted"));
  EXPECT_EQ(sink.last_report().result, PushResult::kInterrupted);
}

TEST_F(PushGatewayTest, InterruptEndsARequest) {
  ScriptedPeer peer({Reply::Silence()});
  PushGateway::Options options = Options(peer.address());
  options.http.total_timeout = options.time_budget = 3600s;
  PushGateway sink(std::move(options));
  std::thread interrupter([&] {
    peer.WaitForRequests(1);
    sink.Interrupt();
  });
  ASSERT_FALSE(sink.Push(ThreeGroups()).ok());
  interrupter.join();
  EXPECT_EQ(sink.last_report().result, PushResult::kInterrupted);
  EXPECT_EQ(sink.last_report().groups_failed, 3U);
}

TEST_F(PushGatewayTest, APushAfterRearmIsAPushAsAny) {
  ScriptedPeer peer({Reply::Status(200)});
  PushGateway sink(Options(peer.address()));
  sink.Interrupt();
  EXPECT_FALSE(sink.Push(OneGroup()).ok());
  EXPECT_THAT(peer.requests(), IsEmpty());
  sink.Rearm();
  EXPECT_TRUE(sink.Push(OneGroup()).ok());
}

class GzipChoiceTest : public PushGatewayTest {
 protected:
  // Whether a text of about this size is compressed on its way to a gateway.
  bool IsCompressed(PushGateway::Gzip gzip, const std::string& gateway, size_t size) {
    ScriptedPeer peer({Reply::Status(200)});
    PushGateway::Options options = Options(gateway);
    options.gzip = gzip;
    options.http.proxy = "http://" + peer.address();  // so that a name means a peer on another host
    PushGateway sink(std::move(options));
    const Status status = sink.Push(Snap({{"a", {}}}, {{"x", MetricType::kGauge, 1, 0, {}, std::string(size, 'x')}}));
    EXPECT_TRUE(status.ok()) << status.error();
    return peer.requests().at(0).find("Content-Encoding: gzip") != std::string::npos;
  }
};

TEST_F(GzipChoiceTest, AutoIsForLargeTextsToOtherHosts) {
  EXPECT_TRUE(IsCompressed(PushGateway::Gzip::kAuto, "metrics_gateway:9091", 20000));
  EXPECT_FALSE(IsCompressed(PushGateway::Gzip::kAuto, "metrics_gateway:9091", 10000));
  EXPECT_FALSE(IsCompressed(PushGateway::Gzip::kAuto, "localhost:9091", 20000));
}

TEST_F(GzipChoiceTest, OnAndOffAreForAll) {
  EXPECT_TRUE(IsCompressed(PushGateway::Gzip::kOn, "localhost:9091", 10));
  EXPECT_FALSE(IsCompressed(PushGateway::Gzip::kOff, "metrics_gateway:9091", 20000));
}

TEST(PushResultTest, HasANameForMetrics) {
  EXPECT_EQ(ToString(PushResult::kSuccess), "success");
  EXPECT_EQ(ToString(PushResult::kRejected), "rejected");
  EXPECT_EQ(ToString(PushResult::kServerError), "server_error");
  EXPECT_EQ(ToString(PushResult::kUnreachable), "unreachable");
  EXPECT_EQ(ToString(PushResult::kInterrupted), "interrupted");
  EXPECT_EQ(ToString(PushResult::kDeferred), "deferred");
}

}  // namespace
}  // namespace persia::agent
