// Against a peer that does not tell which family it refuses.
#include "push/held_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "captured_log.h"
#include "peers/scripted_peer.h"
#include "push/push_gateway.h"
#include "push/snapshots.h"

namespace persia::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

std::string MethodOf(const std::string& request) { return request.substr(0, request.find(' ')); }

Snapshot Families(int count) {
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) samples.push_back({"m" + std::to_string(100 + i), MetricType::kGauge, 1});
  return Snap({{"job", {}}}, samples);
}

TEST(QuarantineTest, HalvesArePostedSoThatNothingDisappearsMeanwhile) {
  ScriptedPeer peer({Reply::Status(400), Reply::Status(200), Reply::Status(400), Reply::Status(200), Reply::Status(200)});
  PushGateway sink({.address = GatewayAddress::Parse(peer.address()).value()});
  EXPECT_TRUE(sink.Push(Families(2)).ok());
  std::vector<std::string> methods;
  for (const std::string& request : peer.requests()) methods.push_back(MethodOf(request));
  EXPECT_THAT(methods, ElementsAre("PUT", "POST", "POST", "POST", "PUT"));
  EXPECT_THAT(peer.requests().at(2), AllOf(HasSubstr("m100 1"), Not(HasSubstr("m101 1"))));
  EXPECT_THAT(peer.requests().at(3), AllOf(HasSubstr("m101 1"), Not(HasSubstr("m100 1"))));
  EXPECT_THAT(peer.requests().at(4), AllOf(HasSubstr("m101 1"), Not(HasSubstr("m100 1"))));
  EXPECT_EQ(sink.last_report().quarantined_series, 1U);
}

// Histograms of two roles may have different bounds: then there are two families of the name.
TEST(QuarantineTest, AFamilyIsHeldBackInTheGroupOfTheSecondBounds) {
  ScriptedPeer peer({Reply::Status(200), Reply::Status(400), Reply::Status(200), Reply::Status(400), Reply::Status(200)});
  PushGateway sink({.address = GatewayAddress::Parse(peer.address()).value()});
  Layout layout{.identities = {{"a", {}}, {"b", {}}}, .families = {}};
  for (uint32_t identity = 0; identity < 2; ++identity) {
    const std::vector<double> bounds(1, identity + 1.0);
    layout.families.push_back({.name = "h",
                               .type = MetricType::kHistogram,
                               .help = "",
                               .unit = "",
                               .bounds = bounds,
                               .series = {{.identity = identity, .first_value = layout.value_count, .labels = {}}}});
    layout.value_count += 3;
  }
  const Snapshot snapshot{std::make_shared<const Layout>(layout), std::vector<double>(layout.value_count, 1), {}};
  static_cast<void>(sink.Push(snapshot));
  EXPECT_EQ(sink.last_report().quarantined_series, 1U);
}

// PushGateway 1.11.0 refuses in this way. libcurl repeats a request on a reused connection, so the peer closes two of them.
TEST(QuarantineTest, AFamilyAtWhichTheGatewayClosesTheConnectionIsHeldBack) {
  const Reply ok = Reply::Status(200);
  const Reply closed = Reply::Close();
  ScriptedPeer peer({closed, ok, closed, closed, ok, ok, closed, closed, ok});
  CapturedLog log;
  PushGateway sink({.address = GatewayAddress::Parse(peer.address()).value()});
  EXPECT_TRUE(sink.Push(Families(2)).ok());
  EXPECT_THAT(peer.requests(), SizeIs(9));
  EXPECT_THAT(peer.requests().back(), AllOf(HasSubstr("PUT "), HasSubstr("m101 1"), Not(HasSubstr("m100 1"))));
  EXPECT_EQ(sink.last_report().quarantined_series, 1U);
  EXPECT_THAT(log.Warnings(), ElementsAre(AllOf(HasSubstr("refuses \"m100\""), HasSubstr("closed without an answer"))));
}

TEST(QuarantineTest, AGatewayThatWasKilledHoldsNoFamilyBack) {
  for (const int families : {1, 2}) {
    ScriptedPeer peer({Reply::Close(), Reply::Status(200)});
    PushGateway sink({.address = GatewayAddress::Parse(peer.address()).value(), .first_pause = std::chrono::milliseconds(1)});
    EXPECT_TRUE(sink.Push(Families(families)).ok());
    EXPECT_EQ(MethodOf(peer.requests().back()), "PUT");
    EXPECT_EQ(sink.last_report().quarantined_series, 0U);
  }
}

TEST(QuarantineTest, AGatewayThatIsKilledAtTheHourlyRetryHoldsNothingBack) {
  const Reply ok = Reply::Status(200);
  const Reply refused = Reply::Status(400, "collected metric \"m100\" { gauge:<value:1 > } is not a COUNTER\n");
  // The second push is closed twice, since libcurl sends again on a connection that was used before.
  ScriptedPeer peer({refused, ok, Reply::Close(), Reply::Close(), ok});
  auto now = std::chrono::steady_clock::now();
  PushGateway sink({.address = GatewayAddress::Parse(peer.address()).value(),
                    .now = [&] { return now; },
                    .sleep = [](std::chrono::milliseconds) { return true; }});
  EXPECT_TRUE(sink.Push(Families(2)).ok());
  EXPECT_EQ(sink.last_report().quarantined_series, 1U);
  now += std::chrono::hours(2);
  EXPECT_TRUE(sink.Push(Families(2)).ok());
  EXPECT_EQ(sink.last_report().quarantined_series, 0U);
}

TEST(QuarantineTest, TheBisectionIsBounded) {
  // Refuses all but a group without families.
  ScriptedPeer peer({Reply::Status(400), Reply::Status(200), Reply::Status(400)});
  PushGateway sink({.address = GatewayAddress::Parse(peer.address()).value()});
  EXPECT_FALSE(sink.Push(Families(1000)).ok());
  EXPECT_THAT(peer.requests(), SizeIs(Le(52U)));
  EXPECT_EQ(sink.last_report().result, PushResult::kRejected);
}

class SizeLimitTest : public ::testing::Test {
 protected:
  // The families that are left out of those of these sizes.
  FamilyNames Choose(const std::vector<std::pair<std::string, size_t>>& sizes) {
    std::vector<FamilySize> families;
    for (const auto& [name, bytes] : sizes) {
      FamilyLayout& layout = layouts_.emplace_back();
      layout.name = name;
      families.push_back({&layout, bytes, 1});
    }
    return limit_.Choose("/group", families, added_);
  }
  std::vector<std::string> Added() const {
    std::vector<std::string> names;
    for (const FamilySize& family : added_) names.push_back(family.family->name);
    return names;
  }

  SizeLimit limit_{800};
  std::deque<FamilyLayout> layouts_;
  std::vector<FamilySize> added_;
};

TEST_F(SizeLimitTest, TheLargestFamiliesGoFirst) {
  EXPECT_THAT(Choose({{"a", 300}, {"b", 900}, {"c", 500}, {"d", 400}}), ElementsAre("b", "c"));
  EXPECT_THAT(Added(), ElementsAre("b", "c"));
}

TEST_F(SizeLimitTest, OfEqualOnesTheLastGoes) {
  EXPECT_THAT(Choose({{"a", 300}, {"b", 300}, {"c", 300}}), ElementsAre("c"));
  EXPECT_THAT(Added(), ElementsAre("c"));
}

TEST_F(SizeLimitTest, WhatFitsStays) {
  EXPECT_FALSE(limit_.Applies("/group", 800));
  EXPECT_TRUE(limit_.Applies("/group", 801));
  EXPECT_THAT(Choose({{"a", 400}, {"b", 400}}), IsEmpty());
}

TEST_F(SizeLimitTest, WhatIsLeftOutStaysSoThoughAnotherHasGrownLarger) {
  Choose({{"a", 450}, {"b", 500}});
  EXPECT_TRUE(limit_.Applies("/group", 450));
  EXPECT_THAT(Choose({{"a", 550}, {"b", 500}}), ElementsAre("b"));
  EXPECT_THAT(Added(), IsEmpty());
}

TEST_F(SizeLimitTest, WhatIsLeftOutComesBackWhenThereIsRoomToSpare) {
  Choose({{"a", 450}, {"b", 500}});
  EXPECT_THAT(Choose({{"a", 300}, {"b", 450}}), ElementsAre("b"));  // fits, but leaves less than an eighth
  EXPECT_THAT(Choose({{"a", 300}, {"b", 400}}), IsEmpty());
  EXPECT_FALSE(limit_.Applies("/group", 700));
}

TEST_F(SizeLimitTest, AGroupIsForgottenWithItsIdentity) {
  Choose({{"a", 900}});
  limit_.KeepOnly(FamilyNames{"/other"});
  EXPECT_THAT(limit_.LeftOut("/group"), IsEmpty());
}

}  // namespace
}  // namespace persia::agent
