// Debian's prometheus-pushgateway refuses some families, and all others arrive, whether it names the offenders (1.5.1 does) or
// not (1.11.0).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "captured_log.h"
#include "peers/real_gateway.h"
#include "push/push_gateway.h"
#include "push/snapshots.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RealQuarantineTest : public ::testing::TestWithParam<PushFormat::Choice> {
 protected:
  PushGateway::Options Options() {
    return {.address = GatewayAddress::Parse(peer_.address()).value(), .format = GetParam(), .time_budget = 60s, .now = [this] {
              return std::chrono::steady_clock::now() + passed_;
            }};
  }
  void Push(const Snapshot& snapshot) {
    const Status status = sink_.Push(snapshot);
    EXPECT_TRUE(status.ok()) << status.error();
  }
  // The text that the log quotes of the gateway.
  [[nodiscard]] auto Quotes(const std::string& words) const { return HasSubstr(names_ ? words : "closed without an answer"); }
  // A gateway that names the families takes this few requests; else they are found by bisection.
  [[nodiscard]] size_t AtMost(size_t requests) const { return names_ ? requests : 64; }
  // Another job's group, which a bad family of ours must not affect.
  void Foreign(const std::vector<Sample>& samples) {
    PushGateway other({.address = GatewayAddress::Parse(peer_.address()).value()});
    ASSERT_TRUE(other.Push(Snap({{"another_job", {}}}, samples)).ok());
  }

  CapturedLog log_;
  RealGateway peer_;
  const bool names_ = peer_.NamesOffenders();
  std::chrono::seconds passed_{0};
  PushGateway sink_{Options()};
};

TEST_P(RealQuarantineTest, SeveralOffendersAreHeldBackAndTheRestArrivesInTheSamePush) {
  Foreign({{"x", MetricType::kGauge, 1}, {"y", MetricType::kGauge, 1}});
  const Snapshot snapshot = Snap({kTrainer, kServer}, {{"go_goroutines", MetricType::kCounter, 1, 0},
                                                       {"good", MetricType::kCounter, 1, 0},
                                                       {"good", MetricType::kCounter, 2, 1},
                                                       {"x", MetricType::kCounter, 1, 0, {{"feat", "a"}}},
                                                       {"x", MetricType::kCounter, 1, 0, {{"feat", "b"}}},
                                                       {"y", MetricType::kCounter, 1, 0},
                                                       {"z", MetricType::kCounter, 3, 0}});
  Push(snapshot);
  EXPECT_THAT(peer_.Lines("good{"), SizeIs(2));
  EXPECT_THAT(peer_.Lines("z{"), SizeIs(1));
  EXPECT_EQ(sink_.last_report().result, PushResult::kSuccess);
  EXPECT_EQ(sink_.last_report().quarantined_series, 4U);
  EXPECT_LE(sink_.last_report().requests, AtMost(4));  // one for the server, two or three for the trainer
  EXPECT_THAT(log_.Warnings(), ElementsAre(AllOf(HasSubstr("refuses 3 metrics of /metrics/job/job/instance/rep_0/role/trainer"),
                                                 Quotes("collected metric \"x\""), Quotes("is not a "), HasSubstr("\"y\" ("),
                                                 HasSubstr("\"go_goroutines\" ("))));
  Push(snapshot);
  EXPECT_EQ(sink_.last_report().requests, 2U);
  EXPECT_EQ(sink_.last_report().quarantined_series, 4U);
  EXPECT_THAT(log_.Warnings(), SizeIs(1));
}

TEST_P(RealQuarantineTest, HoweverManyAreRefusedAtOnceAreOneLineOfBoundedLength) {
  std::vector<Sample> foreign;
  std::vector<Sample> ours;
  for (int i = 100; i < 300; ++i) {
    foreign.push_back({"m" + std::to_string(i), MetricType::kGauge, 1});
    ours.push_back({"m" + std::to_string(i), MetricType::kCounter, 1, 0, {{"label", std::string(200, 'v')}}});
  }
  Foreign(foreign);
  Push(Snap({kTrainer}, ours));
  EXPECT_EQ(sink_.last_report().quarantined_series, 200U);
  EXPECT_THAT(log_.Warnings(), ElementsAre(AllOf(HasSubstr("refuses 200 metrics"), HasSubstr("), \"m"), HasSubstr(" more; "))));
  EXPECT_LT(log_.Warnings().front().size(), 4000U);
}

TEST_P(RealQuarantineTest, TwoSeriesThatAreOneOnTheGatewayCostTheirFamily) {
  Push(Snap({kTrainer}, {{"good", MetricType::kCounter, 1}, {"x", MetricType::kGauge, 1}, {"x", MetricType::kGauge, 2}}));
  EXPECT_THAT(peer_.Lines("good{"), SizeIs(1));
  EXPECT_EQ(sink_.last_report().quarantined_series, 2U);
  EXPECT_THAT(log_.Warnings(), ElementsAre(Quotes("collected before")));
}

TEST_P(RealQuarantineTest, OfAHistogramAndItsShadowTheShadowGoes) {
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back(kTrainer);
  layout->families.push_back({"h", MetricType::kHistogram, "", "", {1}, {{.identity = 0, .first_value = 0, .labels = {}}}});
  layout->families.push_back({"h_count", MetricType::kGauge, "", "", {}, {{.identity = 0, .first_value = 3, .labels = {}}}});
  layout->value_count = 4;
  Push({layout, {1, 1, 1, 7}, {}});
  EXPECT_THAT(peer_.Lines("h_bucket{"), SizeIs(2));
  EXPECT_EQ(sink_.last_report().quarantined_series, 1U);
}

TEST_P(RealQuarantineTest, AnOffenderIsTriedAgainHourlyAndTheRestArrivesAllTheSame) {
  Foreign({{"x", MetricType::kGauge, 1}});
  Push(Snap({kTrainer}, {{"good", MetricType::kCounter, 1}, {"x", MetricType::kCounter, 1}}));
  passed_ = 3570s;
  Push(Snap({kTrainer}, {{"good", MetricType::kCounter, 2}, {"x", MetricType::kCounter, 1}}));
  EXPECT_EQ(sink_.last_report().requests, 1U);
  passed_ = 3602s;
  Push(Snap({kTrainer}, {{"good", MetricType::kCounter, 3}, {"x", MetricType::kCounter, 1}}));
  EXPECT_LE(sink_.last_report().requests, AtMost(2));
  EXPECT_EQ(sink_.last_report().quarantined_series, 1U);
  EXPECT_THAT(peer_.Lines("good{"), ElementsAre(HasSubstr("} 3")));
  passed_ = 3605s;
  Push(Snap({kTrainer}, {{"good", MetricType::kCounter, 4}, {"x", MetricType::kCounter, 1}}));
  EXPECT_EQ(sink_.last_report().requests, 1U);
  EXPECT_THAT(log_.Warnings(), SizeIs(1));

  peer_.Kill();
  peer_.Start();
  passed_ = 7300s;
  Push(Snap({kTrainer}, {{"good", MetricType::kCounter, 5}, {"x", MetricType::kCounter, 1}}));
  EXPECT_THAT(peer_.Lines("x{"), SizeIs(1));
  EXPECT_EQ(sink_.last_report().quarantined_series, 0U);
  EXPECT_THAT(log_.Infos(), ElementsAre(HasSubstr("accepts \"x\"")));
}

TEST_P(RealQuarantineTest, AReloadLiftsIt) {
  Foreign({{"x", MetricType::kGauge, 1}});
  const Snapshot snapshot = Snap({kTrainer}, {{"good", MetricType::kCounter, 1}, {"x", MetricType::kCounter, 1}});
  Push(snapshot);
  peer_.Kill();
  peer_.Start();
  sink_.LiftQuarantine();
  Push(snapshot);
  EXPECT_THAT(peer_.Lines("x{"), SizeIs(1));
  EXPECT_EQ(sink_.last_report().quarantined_series, 0U);
}

class RealTextQuarantineTest : public RealQuarantineTest {};

TEST_P(RealTextQuarantineTest, AfterAnAnswerThatNamesNoFamilyTheGroupIsBisected) {
  // No label of ours is bad; this one represents what a gateway refuses without naming the family. Recent ones read any name.
  std::vector<Sample> samples;
  for (int i = 100; i < 120; ++i) samples.push_back({"m" + std::to_string(i), MetricType::kGauge, 1});
  samples[13].labels = {{"", "x"}};
  Push(Snap({kTrainer}, samples));
  EXPECT_THAT(peer_.Lines("m113"), IsEmpty());
  EXPECT_THAT(peer_.Lines("m112{"), SizeIs(1));
  EXPECT_EQ(sink_.last_report().quarantined_series, 1U);
  EXPECT_LE(sink_.last_report().requests, 16U);
  EXPECT_THAT(log_.Warnings(), ElementsAre(AllOf(HasSubstr("refuses \"m113\""), HasSubstr("text format parsing error"))));
}

TEST_P(RealQuarantineTest, AHugeAnswerNamesAllItsOffendersAtOnce) {
  Foreign({{"x", MetricType::kGauge, 1}, {"y", MetricType::kGauge, 1}});
  std::vector<Sample> samples{{"good", MetricType::kCounter, 1}};
  for (const char* name : {"x", "y"}) {
    for (int i = 0; i < 2000; ++i) samples.push_back({name, MetricType::kCounter, 1, 0, {{"n", std::to_string(i)}}});
  }
  Push(Snap({kTrainer}, samples));
  EXPECT_LE(sink_.last_report().requests, AtMost(2));
  EXPECT_EQ(sink_.last_report().quarantined_series, 4000U);
}

TEST_P(RealQuarantineTest, AGroupThatIsTooLargeArrivesWithoutItsLargestFamily) {
  PushGateway::Options options = Options();
  options.max_push_bytes = 2000;
  PushGateway sink(std::move(options));
  std::vector<Sample> samples{{"good", MetricType::kCounter, 1}};
  for (int i = 0; i < 200; ++i) samples.push_back({"steps", MetricType::kCounter, 1, 0, {{"step", std::to_string(i)}}});
  for (int push = 0; push < 2; ++push) {
    ASSERT_TRUE(sink.Push(Snap({kTrainer}, samples)).ok());
    EXPECT_EQ(sink.last_report().dropped_series, 200U);
    EXPECT_THAT(peer_.Lines("good{"), SizeIs(1));
    EXPECT_THAT(peer_.Lines("steps{"), IsEmpty());
  }
  EXPECT_THAT(log_.Warnings(), ElementsAre(AllOf(HasSubstr("\"steps\" (200 series"), HasSubstr("is larger than 2000 bytes"))));
}

INSTANTIATE_TEST_SUITE_P(Text, RealTextQuarantineTest, ::testing::Values(PushFormat::Choice::kText));
INSTANTIATE_TEST_SUITE_P(Formats, RealQuarantineTest,
                         ::testing::Values(PushFormat::Choice::kText, PushFormat::Choice::kProtobuf),
                         [](const auto& test) { return test.param == PushFormat::Choice::kText ? "Text" : "Protobuf"; });

}  // namespace
}  // namespace persia::agent
