#include "app/gateway_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "peers/scripted_peer.h"

namespace persia::agent {
namespace {

using ::testing::SizeIs;

// Two gateways, and a link that makes its sinks for them.
class GatewayLinkTest : public ::testing::Test {
 protected:
  static AgentOptions At(const ScriptedPeer& peer) {
    AgentOptions options;
    options.gateway_address = "127.0.0.1:" + std::to_string(peer.port());
    return options;
  }
  std::unique_ptr<PushGateway> Make(const AgentOptions& options) {
    ++made_;
    return std::make_unique<PushGateway>(
        PushGateway::Options{.address = GatewayAddress::Parse(options.gateway_address).value()});
  }
  static Snapshot One() {
    auto layout = std::make_shared<Layout>();
    layout->identities = {{"a", {}}};
    layout->families = {{.name = "x", .type = MetricType::kGauge, .help = "", .unit = "", .bounds = {}, .series = {}}};
    layout->families[0].series.push_back({.identity = 0, .first_value = layout->value_count++, .labels = {}});
    Snapshot snapshot;
    snapshot.layout = std::move(layout);
    snapshot.values = {1};
    return snapshot;
  }

  int made_ = 0;
  ScriptedPeer first_{{Reply::Status(200)}};
  ScriptedPeer second_{{Reply::Status(200)}};
  GatewayLink link_{At(first_), [this](const AgentOptions& options) { return Make(options); }};
  PushTransport transport_ = link_.Transport();
};

TEST_F(GatewayLinkTest, LeadsElsewhereWhereTheSettingsSaySo) {
  EXPECT_TRUE(transport_.push(One()).ok());
  EXPECT_EQ(transport_.reconfigure(At(first_)), transport_.name);
  EXPECT_EQ(made_, 1) << "the gateway is the same";
  EXPECT_EQ(transport_.reconfigure(At(second_)), "127.0.0.1:" + std::to_string(second_.port()));
  EXPECT_TRUE(transport_.push(One()).ok());
  EXPECT_THAT(first_.requests(), SizeIs(1));
  EXPECT_THAT(second_.requests(), SizeIs(1));
}

TEST_F(GatewayLinkTest, WhoeverInterruptsMeansTheNextGatewayToo) {
  transport_.interrupt();
  transport_.reconfigure(At(second_));
  EXPECT_FALSE(transport_.push(One()).ok());
  transport_.rearm();
  EXPECT_TRUE(transport_.push(One()).ok());
  EXPECT_THAT(second_.requests(), SizeIs(1));
}

TEST_F(GatewayLinkTest, WhatWasCutShortForAChangeGoesOnAfterIt) {
  transport_.cut_short();
  EXPECT_FALSE(transport_.push(One()).ok());
  transport_.reconfigure(At(first_));  // the change was taken back
  EXPECT_TRUE(transport_.push(One()).ok());
  EXPECT_THAT(first_.requests(), SizeIs(1));
}

}  // namespace
}  // namespace persia::agent
