#include "app/gateway_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "peers/scripted_peer.h"

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// Two gateways, and routes that make their sinks for them.
class GatewayRoutesTest : public ::testing::Test {
 protected:
  static AgentOptions At(const std::string& address) {
    AgentOptions options;
    options.gateway_address = address;
    options.has_gateway_address = true;
    return options;
  }
  std::shared_ptr<PushGateway> Make(const GatewayPlace& place) {
    made_.push_back(place.name);
    return std::make_shared<PushGateway>(
        PushGateway::Options{.address = place.address, .name = place.name, .pins = place.pins});
  }
  // One gauge of each of this many identities.
  static Snapshot Groups(uint32_t count) {
    auto layout = std::make_shared<Layout>();
    layout->families = {{.name = "x", .type = MetricType::kGauge, .help = "", .unit = "", .bounds = {}, .series = {}}};
    Snapshot snapshot;
    for (uint32_t i = 0; i < count; ++i) {
      layout->identities.push_back({"job", {{"instance", "rep_" + std::to_string(i)}}});
      layout->families[0].series.push_back({.identity = i, .first_value = layout->value_count++, .labels = {}});
      snapshot.values.push_back(1);
    }
    snapshot.layout = std::move(layout);
    return snapshot;
  }

  std::vector<std::string> made_;
  ScriptedPeer first_{{Reply::Status(200)}};
  ScriptedPeer second_{{Reply::Status(200)}};
  const std::string both_ = first_.address() + "," + second_.address();
  std::vector<std::string> ips_{"127.0.0.1"};  // the addresses of the name
  GatewayNames names_{{.look_up = [this](const std::string&) { return GatewayNames::Answer(ips_); }}};
  GatewayRoutes gateways_{At(first_.address()), names_,
                          [this](const AgentOptions&, const GatewayPlace& place) { return Make(place); }};
  PushRoutes routes_ = gateways_.Routes();
};

TEST_F(GatewayRoutesTest, LeadElsewhereWhereTheSettingsSaySo) {
  ASSERT_THAT(routes_.sinks, SizeIs(1));
  EXPECT_TRUE(routes_.sinks[0]->Push(Groups(1)).ok());
  EXPECT_FALSE(routes_.changes(At(first_.address())));
  EXPECT_TRUE(routes_.changes(At(second_.address())));
  const auto sinks = routes_.take(At(second_.address()));
  ASSERT_THAT(sinks, SizeIs(1));
  EXPECT_EQ(sinks[0]->name(), second_.address());
  EXPECT_TRUE(sinks[0]->Push(Groups(1)).ok());
  EXPECT_THAT(first_.requests(), SizeIs(1));
  EXPECT_THAT(second_.requests(), SizeIs(1));
  EXPECT_TRUE(routes_.changes(At("off")));
  EXPECT_THAT(routes_.take(At("off")), SizeIs(0));
}

TEST_F(GatewayRoutesTest, AGatewayThatStaysIsKeptAndSharesItsGroups) {
  const auto both = routes_.take(At(both_));
  ASSERT_THAT(both, SizeIs(2));
  EXPECT_THAT(made_, ElementsAre(first_.address(), second_.address())) << "the first one once";
  for (const auto& sink : both) EXPECT_TRUE(sink->Push(Groups(40)).ok());
  EXPECT_EQ(first_.requests().size() + second_.requests().size(), 40U);
  EXPECT_GT(first_.requests().size(), 5U);
  EXPECT_GT(second_.requests().size(), 5U);
  const auto alone = routes_.take(At(first_.address()));
  EXPECT_THAT(made_, SizeIs(2));
  const size_t before = first_.requests().size();
  EXPECT_TRUE(alone[0]->Push(Groups(40)).ok());
  EXPECT_EQ(first_.requests().size() - before, 40U) << "alone it takes all";
}

TEST_F(GatewayRoutesTest, OtherTimeoutsMakeThemAnew) {
  AgentOptions slower = At(first_.address());
  slower.push_timeout *= 2;
  EXPECT_TRUE(routes_.changes(slower));
  routes_.take(slower);
  EXPECT_THAT(made_, SizeIs(2));
  EXPECT_FALSE(routes_.changes(slower));
}

TEST_F(GatewayRoutesTest, ANameStandsForAllOfItsAddressesOnceTheyAreKnown) {
  const std::string port = std::to_string(first_.port());
  const AgentOptions by_name = At("dns+http://gateways:" + port + "/x," + second_.address());
  EXPECT_TRUE(routes_.changes(by_name));
  EXPECT_THAT(routes_.take(by_name), SizeIs(0)) << "a part of the gateways would get groups that are another's";
  EXPECT_FALSE(routes_.changes(by_name));
  ips_ = {"127.0.0.1", "127.0.0.2"};
  names_.Start([] {});
  names_.AwaitFirst(std::chrono::hours(1));
  EXPECT_TRUE(routes_.changes(by_name));
  std::vector<std::string> names;
  for (const auto& sink : routes_.take(by_name)) names.push_back(sink->name());
  EXPECT_THAT(names, ElementsAre("127.0.0.1:" + port, "127.0.0.2:" + port, second_.address()));
  EXPECT_FALSE(routes_.changes(by_name));
  names_.Stop();
}

TEST_F(GatewayRoutesTest, TheDefaultIsAGatewayOnceItsNameIsKnown) {
  EXPECT_THAT(routes_.take(AgentOptions()), SizeIs(0));
  names_.Start([] {});
  names_.AwaitFirst(std::chrono::hours(1));
  EXPECT_TRUE(routes_.changes(AgentOptions()));
  const auto sinks = routes_.take(AgentOptions());
  ASSERT_THAT(sinks, SizeIs(1));
  EXPECT_EQ(sinks[0]->name(), "metrics_gateway:9091") << "by its name, as it is set";
  names_.Stop();
}

TEST_F(GatewayRoutesTest, AnAddressThatIsAlsoOneOfANameIsOneGateway) {
  const AgentOptions twice = At(first_.address() + ",dns+gateways:" + std::to_string(first_.port()));
  routes_.take(twice);
  names_.Start([] {});
  names_.AwaitFirst(std::chrono::hours(1));
  EXPECT_THAT(routes_.take(twice), SizeIs(1));
  names_.Stop();
}

}  // namespace
}  // namespace persia::agent
