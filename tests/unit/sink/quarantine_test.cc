// Against a peer that refuses without a word about what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "peers/scripted_peer.h"
#include "sink/push_gateway.h"
#include "sink/snapshots.h"

namespace persia::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

std::string MethodOf(const std::string& request) { return request.substr(0, request.find(' ')); }

Snapshot Families(int count) {
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) samples.push_back({"m" + std::to_string(100 + i), MetricType::kGauge, 1});
  return Snap({{"job", {}}}, samples);
}

TEST(QuarantineTest, HalvesGoByPostSoThatNothingDisappearsMeanwhile) {
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

TEST(QuarantineTest, TheSearchIsBounded) {
  // Refuses all but a group without families.
  ScriptedPeer peer({Reply::Status(400), Reply::Status(200), Reply::Status(400)});
  PushGateway sink({.address = GatewayAddress::Parse(peer.address()).value()});
  EXPECT_FALSE(sink.Push(Families(1000)).ok());
  EXPECT_THAT(peer.requests(), SizeIs(Le(52U)));
  EXPECT_EQ(sink.last_report().result, PushResult::kRejected);
}

}  // namespace
}  // namespace persia::agent
