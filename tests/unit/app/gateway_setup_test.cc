#include "app/agent_setup.h"

#include <gtest/gtest.h>

#include <string>

#include "push/ledger_directory.h"

namespace persia::agent {
namespace {

AgentOptions At(const std::string& address) {
  AgentOptions options;
  options.gateway_address = address;
  options.has_gateway_address = true;
  return options;
}

TEST(MakeGatewayTest, TheDefaultWaitsForItsNameAndNoOther) {
  LedgerDirectory directory;
  GroupLedger ledger(directory.Options());
  const Pusher::Target by_default = MakeGateway(AgentOptions(), ledger);
  EXPECT_EQ(by_default.gateway->name(), "metrics_gateway:9091");
  EXPECT_EQ(by_default.awaited_host, "metrics_gateway");
  const Pusher::Target set = MakeGateway(At("https://gw/x"), ledger);
  EXPECT_EQ(set.gateway->name(), "gw:443");
  EXPECT_EQ(set.awaited_host, "");
  EXPECT_EQ(MakeGateway(At("off"), ledger).gateway, nullptr);
}

TEST(HaveSameGatewayTest, DifferIfTheAddressOrTheWayToPushDiffers) {
  EXPECT_TRUE(HaveSameGateway(At("gw"), At("gw")));
  EXPECT_FALSE(HaveSameGateway(At("gw"), At("other")));
  EXPECT_FALSE(HaveSameGateway(AgentOptions(), At("metrics_gateway:9091"))) << "one that is set is not looked up first";
  AgentOptions slower = At("gw");
  slower.push_timeout *= 2;
  EXPECT_FALSE(HaveSameGateway(At("gw"), slower));
  AgentOptions other_log = At("gw");
  other_log.log_level = LogLevel::kError;
  EXPECT_TRUE(HaveSameGateway(At("gw"), other_log));
}

}  // namespace
}  // namespace persia::agent
