#include "push/push_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "peers/real_gateway.h"
#include "peers/scripted_peer.h"
#include "push/push_gateway.h"
#include "push/snapshots.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::SizeIs;

constexpr char kStatus[] = R"({"status":"success","data":{"build_information":{"version":"1.5.1"}}})";

class PushFormatTest : public ::testing::Test {
 protected:
  std::unique_ptr<PushGateway> Sink(const std::string& address, std::chrono::milliseconds status_limit = 30s) {
    return std::make_unique<PushGateway>(
        PushGateway::Options{.address = GatewayAddress::Parse(address).value(),
                             .format = PushFormat::Choice::kAuto,
                             .time_budget = 60s,
                             .first_pause = 1ms,
                             .longest_pause = 2ms,
                             .status_limit = status_limit,
                             .now = [this] { return std::chrono::steady_clock::now() + passed_; }});
  }
  static Snapshot OneGroup() { return Snap({{"a", {}}}, {{"x", MetricType::kGauge, 1}}); }
  // Method and format of each request.
  static std::vector<std::string> Requests(const ScriptedPeer& peer) {
    std::vector<std::string> requests;
    for (const std::string& request : peer.requests()) {
      const std::string path = request.substr(0, request.find(" HTTP"));
      const bool is_protobuf = request.find("Content-Type: application/vnd.google.protobuf;") != std::string::npos;
      requests.push_back(path.starts_with("GET") ? path
                                                 : path.substr(0, path.find(' ')) + (is_protobuf ? " protobuf" : " text"));
    }
    return requests;
  }
  static void Push(PushGateway& sink) {
    const Status status = sink.Push(OneGroup());
    EXPECT_TRUE(status.ok()) << status.error();
  }
  static Reply ThenClosed(int status) {
    Reply reply = Reply::Status(status);
    reply.then_close = true;
    return reply;
  }

  std::chrono::hours passed_{0};
};

TEST_F(PushFormatTest, AGatewayThatSaysSoGetsProtobufAfterItsFirstPush) {
  ScriptedPeer peer({Reply::Status(200), Reply::Status(200, kStatus), Reply::Status(200)});
  const auto sink = Sink(peer.address());
  for (int i = 0; i < 3; ++i) Push(*sink);
  EXPECT_THAT(Requests(peer), ElementsAre("PUT text", "GET /api/v1/status", "PUT protobuf", "PUT protobuf"));
  EXPECT_EQ(sink->last_report().format, ExpositionFormat::kProtobuf);
}

TEST_F(PushFormatTest, AnotherServerGetsTextAndIsAskedOnceAnHour) {
  for (const Reply& answer : {Reply::Status(200, "{\"status\":\"success\",\"data\":{}}"), Reply::Status(404, kStatus),
                              Reply::Status(401), Reply::Status(500), Reply::Raw("nonsense"), Reply::Silence()}) {
    ScriptedPeer peer({Reply::Status(200), answer, Reply::Status(200)});
    const auto sink = Sink(peer.address(), 1s);
    for (int i = 0; i < 3; ++i) Push(*sink);
    EXPECT_THAT(Requests(peer), ElementsAre("PUT text", "GET /api/v1/status", "PUT text", "PUT text"));
    EXPECT_EQ(sink->last_report().format, ExpositionFormat::kText);
    passed_ += 1h;
    Push(*sink);
    EXPECT_THAT(Requests(peer), SizeIs(6)) << "asked again";
    passed_ = 0h;
  }
}

TEST_F(PushFormatTest, AReloadAsksAgain) {
  ScriptedPeer peer(
      {Reply::Status(200), Reply::Status(404), Reply::Status(200), Reply::Status(200, kStatus), Reply::Status(200)});
  const auto sink = Sink(peer.address());
  Push(*sink);
  sink->LiftQuarantine();
  Push(*sink);
  Push(*sink);
  EXPECT_THAT(Requests(peer), ElementsAre("PUT text", "GET /api/v1/status", "PUT text", "GET /api/v1/status", "PUT protobuf"));
}

TEST_F(PushFormatTest, AGatewayThatRefusesAPushIsNotAskedYet) {
  ScriptedPeer peer({Reply::Status(403), Reply::Status(200), Reply::Status(200, kStatus), Reply::Status(200)});
  const auto sink = Sink(peer.address());
  EXPECT_FALSE(sink->Push(OneGroup()).ok());
  Push(*sink);
  Push(*sink);
  EXPECT_THAT(Requests(peer), ElementsAre("PUT text", "PUT text", "GET /api/v1/status", "PUT protobuf"));
}

TEST_F(PushFormatTest, RefusedProtobufIsSentAsTextAtOnce) {
  for (const int refusal : {400, 404, 415}) {
    ScriptedPeer peer(
        {Reply::Status(200), Reply::Status(200, kStatus), Reply::Status(refusal, "what is this?"), Reply::Status(200)});
    const auto sink = Sink(peer.address());
    for (int i = 0; i < 3; ++i) Push(*sink);
    EXPECT_THAT(Requests(peer), ElementsAre("PUT text", "GET /api/v1/status", "PUT protobuf", "PUT text", "PUT text"));
  }
}

TEST_F(PushFormatTest, WithoutAnAnswerTheNextAttemptIsTextAndTheServerIsAskedAgain) {
  ScriptedPeer peer({Reply::Status(200), Reply::Status(200, kStatus), Reply::Status(200), Reply::Raw("nonsense"),
                     Reply::Status(200), Reply::Status(404), Reply::Status(200)});
  const auto sink = Sink(peer.address());
  for (int i = 0; i < 4; ++i) Push(*sink);
  EXPECT_THAT(Requests(peer), ElementsAre("PUT text", "GET /api/v1/status", "PUT protobuf", "PUT protobuf", "PUT text",
                                          "GET /api/v1/status", "PUT text"));
}

TEST_F(PushFormatTest, WhatWasChosenIsNotAsked) {
  for (const auto choice : {PushFormat::Choice::kText, PushFormat::Choice::kProtobuf}) {
    ScriptedPeer peer({Reply::Status(200), Reply::Status(415)});
    PushGateway sink({.address = GatewayAddress::Parse(peer.address()).value(), .format = choice});
    Push(sink);
    EXPECT_FALSE(sink.Push(OneGroup()).ok());
    EXPECT_THAT(Requests(peer), SizeIs(2));
    EXPECT_THAT(Requests(peer), ::testing::Each(choice == PushFormat::Choice::kText ? "PUT text" : "PUT protobuf"));
  }
}

TEST_F(PushFormatTest, ARealGatewayShowsTheSameForBoth) {
  RealGateway gateway;
  const auto sink = Sink(gateway.address());
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back({"job", {{"instance", "rep_0"}}});
  const auto add = [&](const char* name, MetricType type, std::vector<double> bounds) {
    FamilyLayout family{
        .name = name, .type = type, .help = "Say \"\\\"\nhi.", .unit = "", .bounds = std::move(bounds), .series = {}};
    for (const char* value : {"a", "\"b\\\n", "größe"}) {
      family.series.push_back({.identity = 0, .first_value = layout->value_count, .labels = Labels{{"l", value}, {"m", "x"}}});
      layout->value_count += family.ValuesPerSeries();
    }
    layout->families.push_back(std::move(family));
  };
  add("c", MetricType::kCounter, {});
  add("g", MetricType::kGauge, {});
  add("h", MetricType::kHistogram, {1e-7, 0.25, 1e6, 1e21});
  add("s", MetricType::kSummary, {0.5, 0.99});
  add("u", MetricType::kUntyped, {});
  Snapshot snapshot{layout, {}, {}};
  for (size_t i = 0; i < layout->value_count; ++i) snapshot.values.push_back(static_cast<double>(i * i * i) * 37);
  snapshot.values[1] = 0.1;
  snapshot.values[3] = -1.7976931348623157e308;
  std::vector<std::vector<std::string>> shown;
  for (const ExpositionFormat format : {ExpositionFormat::kText, ExpositionFormat::kProtobuf}) {
    EXPECT_EQ(sink->last_report().format, format);
    ASSERT_TRUE(sink->Push(snapshot).ok());
    EXPECT_EQ(sink->last_report().format, ExpositionFormat::kProtobuf) << "of the next push";
    for (const std::string name : {"c", "g", "h_bucket", "h_sum", "h_count", "s", "s_sum", "s_count", "u"}) {
      shown.push_back(gateway.Lines(name + "{"));
      EXPECT_THAT(shown.back(), SizeIs(::testing::Ge(3U))) << name;
    }
    for (const std::string begin : {"# HELP ", "# TYPE "}) {
      for (const char* name : {"c ", "g ", "h ", "s ", "u "}) shown.push_back(gateway.Lines(begin + name));
    }
  }
  const size_t half = shown.size() / 2;
  for (size_t i = 0; i < half; ++i) EXPECT_EQ(shown[i], shown[half + i]);
}

// One that takes anything with a 200 and keeps nothing of protobuf, as VictoriaMetrics does, loses nothing by that.
TEST_F(PushFormatTest, WhatWentAsProtobufToSomebodyElseGoesAsTextInTheSamePush) {
  ScriptedPeer peer({Reply::Status(200), Reply::Status(200, kStatus), ThenClosed(200), Reply::Status(200), Reply::Status(400),
                     Reply::Status(200)});
  const auto sink = Sink(peer.address());
  for (int i = 0; i < 4; ++i) Push(*sink);
  EXPECT_THAT(Requests(peer), ElementsAre("PUT text", "GET /api/v1/status", "PUT protobuf", "PUT protobuf",
                                          "GET /api/v1/status", "PUT text", "PUT text"));
}

TEST_F(PushFormatTest, AServerThatKeepsNoConnectionGetsText) {
  Reply status = Reply::Status(200, kStatus);
  status.then_close = true;
  ScriptedPeer peer({ThenClosed(200), status, ThenClosed(200)});
  const auto sink = Sink(peer.address());
  for (int i = 0; i < 3; ++i) Push(*sink);
  EXPECT_THAT(Requests(peer), ElementsAre("PUT text", "GET /api/v1/status", "PUT text", "PUT text"));
}

TEST_F(PushFormatTest, WhatStumblesOverProtobufGetsTextWithTheNextTry) {
  for (const int status : {500, 501, 502}) {
    ScriptedPeer peer({Reply::Status(200), Reply::Status(200, kStatus), Reply::Status(status), Reply::Status(200)});
    const auto sink = Sink(peer.address());
    for (int i = 0; i < 3; ++i) Push(*sink);
    EXPECT_THAT(Requests(peer), ElementsAre("PUT text", "GET /api/v1/status", "PUT protobuf", "PUT text", "PUT text"));
  }
}

TEST_F(PushFormatTest, AGatewayThatIsBusyOrRefusesCredentialsKeepsItsFormat) {
  ScriptedPeer peer({Reply::Status(200), Reply::Status(200, kStatus), Reply::Status(503), Reply::Status(429),
                     Reply::Status(403), Reply::Status(200)});
  const auto sink = Sink(peer.address());
  Push(*sink);
  EXPECT_FALSE(sink->Push(OneGroup()).ok());
  Push(*sink);
  EXPECT_THAT(Requests(peer),
              ElementsAre("PUT text", "GET /api/v1/status", "PUT protobuf", "PUT protobuf", "PUT protobuf", "PUT protobuf"));
}

// By default, readers of delimited messages accept up to 4 MiB of each.
TEST_F(PushFormatTest, AVeryLargeFamilyIsSentAsText) {
  RealGateway gateway;
  const auto sink = Sink(gateway.address());
  std::vector<Sample> samples;
  for (int i = 0; i < 5000; ++i) {
    samples.push_back({"x", MetricType::kGauge, i + 0.5, 0, {{"l", std::string(900, 'v') + std::to_string(i)}}});
  }
  const Snapshot snapshot = Snap({{"a", {}}}, samples);
  Push(*sink);
  EXPECT_EQ(sink->last_report().format, ExpositionFormat::kProtobuf);
  ASSERT_TRUE(sink->Push(snapshot).ok());
  EXPECT_EQ(sink->last_report().format, ExpositionFormat::kText);
  EXPECT_THAT(gateway.Lines("x{"), SizeIs(5000));
  ASSERT_TRUE(sink->Push(snapshot).ok());
  EXPECT_EQ(sink->last_report().format, ExpositionFormat::kText) << "for an hour";
}

// A gateway that starts again is another connection, over which protobuf has to prove itself.
TEST_F(PushFormatTest, AnotherConnectionIsAskedAgain) {
  RealGateway gateway;
  const auto sink = Sink(gateway.address());
  Push(*sink);
  Push(*sink);
  for (int restart = 0; restart < 2; ++restart) {
    for (int i = 0; i < 2; ++i) {
      Push(*sink);
      EXPECT_EQ(sink->last_report().format, ExpositionFormat::kProtobuf);
      EXPECT_THAT(gateway.Lines("x{"), SizeIs(1));
    }
    EXPECT_THAT(gateway.Lines("pushgateway_http_requests_total{code=\"200\",handler=\"api/v1/status\""),
                ElementsAre(EndsWith(" 1")));
    gateway.Kill();
    gateway.Start();
  }
}

}  // namespace
}  // namespace persia::agent
