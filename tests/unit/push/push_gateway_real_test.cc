// Against Debian's prometheus-pushgateway.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "peers/real_gateway.h"
#include "push/push_gateway.h"
#include "push/snapshots.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class RealPushTest : public ::testing::TestWithParam<PushFormat::Choice> {
 protected:
  [[nodiscard]] PushGateway::Options Options() const {
    return {.address = GatewayAddress::Parse(peer_.address()).value(),
            .format = GetParam(),
            .time_budget = std::chrono::milliseconds(60000),
            .first_pause = std::chrono::milliseconds(1)};
  }
  void Push(const Snapshot& snapshot) {
    const Status status = sink_.Push(snapshot);
    EXPECT_TRUE(status.ok()) << status.error();
  }

  RealGateway peer_;
  PushGateway sink_{Options()};
};

TEST_P(RealPushTest, EachIdentityIsAGroup) {
  Push(Snap({kTrainer, kServer}, {{"x", MetricType::kGauge, 1.5, 0, {{"feat", "a"}}}, {"x", MetricType::kGauge, 2, 1}}));
  EXPECT_THAT(peer_.Lines("x{"), UnorderedElementsAre("x{feat=\"a\",instance=\"rep_0\",job=\"job\",role=\"trainer\"} 1.5",
                                                      "x{instance=\"rep_1\",job=\"job\",role=\"server\"} 2"));
  EXPECT_THAT(peer_.Lines("# HELP x"), ElementsAre("# HELP x Helps."));
  EXPECT_THAT(peer_.Lines("# TYPE x"), ElementsAre("# TYPE x gauge"));
  EXPECT_EQ(sink_.last_report().groups, 2U);
  EXPECT_EQ(sink_.last_report().http_status, 200);
}

TEST_P(RealPushTest, APushReplacesItsGroupAndNoOther) {
  Push(Snap({kTrainer, kServer}, {{"x", MetricType::kGauge, 1, 0}, {"x", MetricType::kGauge, 2, 1}}));
  Push(Snap({kTrainer}, {{"y", MetricType::kCounter, 3, 0}}));
  EXPECT_THAT(peer_.Lines("x{"), ElementsAre("x{instance=\"rep_1\",job=\"job\",role=\"server\"} 2"));
  EXPECT_THAT(peer_.Lines("y{"), ElementsAre("y{instance=\"rep_0\",job=\"job\",role=\"trainer\"} 3"));
}

TEST_P(RealPushTest, OddIdentitiesArriveAsTheyAre) {
  const std::vector<std::string> kOdd{"a b",  "a/b", "..",  ".",           "a//b/", "größe",
                                      "100%", "%2F", "a+b", "a?b#c;d&e=f", "~._-",  "\"\\"};
  for (const std::string& odd : kOdd) Push(Snap({{odd, {{"role", odd}}}}, {{"x", MetricType::kGauge, 1}}));
  std::vector<std::string> lines;
  for (const std::string& odd : kOdd) {
    const std::string shown = odd == "\"\\" ? "\\\"\\\\" : odd;
    lines.push_back("x{instance=\"\",job=\"" + shown + "\",role=\"" + shown + "\"} 1");
  }
  Push(Snap({{"job", {{"role", ""}}}}, {{"x", MetricType::kGauge, 1}}));  // an empty label is part of the group
  lines.emplace_back("x{instance=\"\",job=\"job\",role=\"\"} 1");
  EXPECT_THAT(peer_.Lines("x{"), ::testing::UnorderedElementsAreArray(lines));
}

TEST_P(RealPushTest, EscapedTextArrivesAsItWas) {
  Push(Snap({kTrainer},
            {{"x", MetricType::kGauge, 1, 0, {{"feat", "say \"a\\b\"\nend"}}, "Back\\slash, \"quote\"\nand line."}}));
  EXPECT_THAT(peer_.Lines("x{"), ElementsAre(HasSubstr("feat=\"say \\\"a\\\\b\\\"\\nend\"")));
  EXPECT_THAT(peer_.Lines("# HELP x"), ElementsAre("# HELP x Back\\\\slash, \"quote\"\\nand line."));
}

// The values of the label `le` in these lines, in order.
std::vector<std::string> BoundsIn(const std::vector<std::string>& lines) {
  std::vector<std::string> bounds;
  for (const std::string& line : lines) {
    const size_t begin = std::min(line.find("{le="), line.find(",le=")) + 5;
    bounds.push_back(line.substr(begin, line.find('"', begin) - begin));
  }
  return bounds;
}

TEST_P(RealPushTest, ABucketHasTheSameLabelHereAndThere) {
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back(kTrainer);
  layout->families.push_back({.name = "h",
                              .type = MetricType::kHistogram,
                              .help = "",
                              .unit = "",
                              .bounds = {1e-7, 0.0001, 0.00025, 0.1, 1.0 / 3, 1, 10000, 123456.5, 1e6, 12345678, 1e21},
                              .series = {{.identity = 0, .first_value = 0, .labels = {}}}});
  layout->value_count = layout->families[0].ValuesPerSeries();
  Snapshot snapshot{layout, std::vector<double>(layout->value_count, 1), {}};
  Push(snapshot);
  std::string ours;
  GroupRenderer().Render(snapshot, 0, ours);
  std::istringstream text(ours);
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("h_bucket{")) lines.push_back(line);
  }
  EXPECT_EQ(BoundsIn(lines), BoundsIn(peer_.Lines("h_bucket{")));
  EXPECT_THAT(lines, ::testing::SizeIs(12));
  EXPECT_THAT(peer_.Lines("h_count"), ElementsAre(HasSubstr("} 12")));
}

TEST_P(RealPushTest, CompressedTextArrives) {
  PushGateway::Options options = Options();
  options.gzip = PushGateway::Gzip::kOn;
  PushGateway compressing(std::move(options));
  std::vector<Sample> samples;
  for (int i = 0; i < 1000; ++i) samples.push_back({"x", MetricType::kGauge, i + 0.5, 0, {{"n", std::to_string(i)}}});
  const Status status = compressing.Push(Snap({kTrainer}, samples));
  EXPECT_TRUE(status.ok()) << status.error();
  EXPECT_EQ(peer_.Lines("x{").size(), 1000U);
  EXPECT_LT(compressing.last_report().bytes, 1000U * 6);
}

TEST_P(RealPushTest, AGatewayThatStartsAgainIsCompleteAfterOnePush) {
  const Snapshot snapshot = Snap({kTrainer, kServer}, {{"x", MetricType::kGauge, 1, 0}, {"x", MetricType::kGauge, 2, 1}});
  Push(snapshot);
  peer_.Kill();
  peer_.Start();
  EXPECT_THAT(peer_.Lines("x{"), IsEmpty());
  Push(snapshot);
  EXPECT_THAT(peer_.Lines("x{"), ::testing::SizeIs(2));
}

TEST_P(RealPushTest, AGatewayThatComesBackWithinTheBudgetGetsAll) {
  peer_.Kill();
  PushGateway::Options options = Options();
  options.sleep = [this](std::chrono::milliseconds) {
    peer_.Start();
    return true;
  };
  PushGateway patient(std::move(options));
  const Status status =
      patient.Push(Snap({kTrainer, kServer}, {{"x", MetricType::kGauge, 1, 0}, {"x", MetricType::kGauge, 2, 1}}));
  EXPECT_TRUE(status.ok()) << status.error();
  EXPECT_THAT(peer_.Lines("x{"), ::testing::SizeIs(2));
  EXPECT_EQ(patient.last_report().requests, 3U);
}

INSTANTIATE_TEST_SUITE_P(Formats, RealPushTest, ::testing::Values(PushFormat::Choice::kText, PushFormat::Choice::kProtobuf),
                         [](const auto& test) { return test.param == PushFormat::Choice::kText ? "Text" : "Protobuf"; });

}  // namespace
}  // namespace persia::agent
