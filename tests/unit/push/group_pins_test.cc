#include "push/group_pins.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

Identity IdentityOf(int rank, const std::string& job = "dlrm", const std::string& ip = "10.0.0.1") {
  return {job, {{"instance", "rep_" + std::to_string(rank)}, {"ip_addr", ip}, {"role", "trainer"}}};
}
std::string Gateway(int number) { return "http://gateway-" + std::to_string(number) + ":9091"; }
GroupPins Pins(int gateways) {
  std::vector<std::string> urls;
  for (int i = 0; i < gateways; ++i) urls.push_back(Gateway(i));
  return GroupPins(std::move(urls));
}

constexpr int kGroups = 2000;

TEST(GroupPinsTest, TheOrderOfTheListDoesNotMatter) {
  const GroupPins forth({Gateway(0), Gateway(1), Gateway(2)});
  const GroupPins back({Gateway(2), Gateway(0), Gateway(1)});
  for (int rank = 0; rank < kGroups; ++rank) EXPECT_EQ(forth.GatewayOf(IdentityOf(rank)), back.GatewayOf(IdentityOf(rank)));
}

TEST(GroupPinsTest, EachGatewayHasItsShare) {
  const GroupPins pins = Pins(4);
  std::map<std::string, int> groups;
  for (int rank = 0; rank < kGroups; ++rank) ++groups[pins.GatewayOf(IdentityOf(rank))];
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(groups[Gateway(i)], kGroups / 4, kGroups / 20) << i;
}

TEST(GroupPinsTest, AGatewayThatComesTakesFromAllAndNothingElseMoves) {
  const GroupPins before = Pins(3);
  const GroupPins after = Pins(4);
  std::map<std::string, int> moved;
  for (int rank = 0; rank < kGroups; ++rank) {
    const std::string& from = before.GatewayOf(IdentityOf(rank));
    const std::string& to = after.GatewayOf(IdentityOf(rank));
    if (from == to) continue;
    EXPECT_EQ(to, Gateway(3));
    ++moved[from];
  }
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(moved[Gateway(i)], kGroups / 12, kGroups / 30) << i;
}

// Agents of different releases push one job's groups, so these results must never change.
TEST(GroupPinsTest, IsTheSameInEachRelease) {
  const GroupPins pins = Pins(4);
  std::string places;
  for (int rank = 0; rank < 16; ++rank) places += pins.GatewayOf(IdentityOf(rank)).substr(15, 1);
  EXPECT_EQ(places, "0013110332033203");
  EXPECT_EQ(pins.GatewayOf({"", {}}), Gateway(2));
}

TEST(GroupPinsTest, AProcessUnderANewAddressStays) {
  const GroupPins pins = Pins(4);
  for (int rank = 0; rank < 32; ++rank) {
    EXPECT_EQ(pins.GatewayOf(IdentityOf(rank)), pins.GatewayOf(IdentityOf(rank, "dlrm", "10.0.0.99")));
    Identity aside = IdentityOf(rank);
    aside.labels.insert(aside.labels.begin(), {"agent", "0123456789abcdef"});
    EXPECT_EQ(pins.GatewayOf(aside), pins.GatewayOf(IdentityOf(rank)));
  }
}

TEST(GroupPinsTest, NamesAndValuesHaveTheirEnds) {
  const GroupPins pins = Pins(64);
  int differ = 0;
  for (int i = 0; i < 32; ++i) {
    const std::string n = std::to_string(i);
    if (pins.GatewayOf({"j" + n, {{"ab", "c"}}}) != pins.GatewayOf({"j" + n, {{"a", "bc"}}})) ++differ;
  }
  EXPECT_GT(differ, 16);
}

}  // namespace
}  // namespace persia::agent
