#include "gateways/gateway_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Urls(const std::string& text) {
  const auto gateways = ParseGateways(text);
  EXPECT_TRUE(gateways.ok()) << gateways.error();
  std::vector<std::string> urls;
  for (const auto& [address, by_name] : gateways.value()) urls.push_back((by_name ? "all of " : "") + address.Url());
  return urls;
}

TEST(GatewayListTest, TakesOneAndSeveral) {
  EXPECT_THAT(Urls("gw"), ElementsAre("http://gw:9091"));
  EXPECT_THAT(Urls("gw-1:9091,gw-0:9092"), ElementsAre("http://gw-1:9091", "http://gw-0:9092"));
  EXPECT_THAT(Urls("https://a/x, [::1]:80 ,b"), ElementsAre("https://a:443/x", "http://[::1]:80", "http://b:9091"));
  EXPECT_THAT(Urls("dns+gw,gw"), ElementsAre("all of http://gw:9091", "http://gw:9091"));
  EXPECT_THAT(Urls("dns+https://gw/x"), ElementsAre("all of https://gw:443/x"));
}

TEST(GatewayListTest, RefusesWhatIsNoList) {
  const struct {
    std::string text;
    const char* error;
  } kCases[] = {
      {"", "it is empty"},
      {"a,", "gateway address \"\": it is empty"},
      {"a,,b", "gateway address \"\": it is empty"},
      {"a,off", "\"off\" must be the only one"},
      {"a,b:9091,b", "gateway address \"b\" is given twice"},
      {"a,b:0", "\"b:0\": the port is not a number"},
      {"dns+10.0.0.1", "\"10.0.0.1\" is an address; leave dns+ out"},
      {"dns+http://[::1]:80", "\"::1\" is an address"},
      {"dns+a,dns+a:9091", "is given twice"},
      {"dns+", "it is empty"},
      {"a;b", "\"a;b\": the host is not a name"},
  };
  for (const auto& [text, error] : kCases) {
    const auto gateways = ParseGateways(text);
    ASSERT_FALSE(gateways.ok()) << text;
    EXPECT_THAT(gateways.error(), HasSubstr(error));
  }
  std::string many = "gw";
  for (int i = 0; i < 64; ++i) many += ",gw" + std::to_string(i);
  EXPECT_THAT(ParseGateways(many).error(), HasSubstr("more than 64"));
  EXPECT_TRUE(ParseGateways(many.substr(3)).ok());
}

TEST(GatewayListTest, NoSecretIsRepeated) {
  EXPECT_THAT(ParseGateways("a,user:hunter2@b").error(), Not(HasSubstr("hunter2")));
  EXPECT_THAT(ParseGateways("user:hunt,er2@b").error(), Not(AnyOf(HasSubstr("hunt"), HasSubstr("er2"))));
}

TEST(GatewayListTest, ThoseThatShareAHostAreToldApart) {
  std::vector<GatewayAddress> addresses;
  for (const char* text : {"a", "http://proxy/1", "http://proxy/2"}) addresses.push_back(GatewayAddress::Parse(text).value());
  EXPECT_THAT(NamesOf(addresses), ElementsAre("a:9091", "http://proxy:80/1", "http://proxy:80/2"));
}

TEST(GatewayListTest, AHostMayBeReplacedByAnAddress) {
  const GatewayAddress named = GatewayAddress::Parse("https://gateways/x").value();
  EXPECT_EQ(named.WithHost("10.0.0.1").Url(), "https://10.0.0.1:443/x");
  EXPECT_EQ(named.WithHost("fd00::1").Url(), "https://[fd00::1]:443/x");
}

}  // namespace
}  // namespace persia::agent
