#include "net/name_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace persia::agent {
namespace {

using ::testing::IsSubsetOf;

TEST(AddressTowards, IsTheOneOnTheRouteToThePeer) {
  EXPECT_EQ(AddressTowards("127.0.0.1", 9091), "127.0.0.1");
  EXPECT_EQ(AddressTowards("127.9.9.9", 1), "127.0.0.1") << "another address of loopback is reached from the first";
  const std::string own = AddressTowards("192.0.2.1", 9091);
  EXPECT_EQ(AddressTowards(own, 9091), own) << "a host reaches itself by that address";
}

TEST(AddressTowards, OfAPeerWithoutAnAddressIsTheDefaultRoutes) {
  EXPECT_EQ(AddressTowards("no_such_host.invalid", 9091), AddressTowards("192.0.2.1", 9091));
}

TEST(LookUpAll, GivesEachAddressOnce) {
  const auto all = LookUpAll("localhost");
  ASSERT_TRUE(all.ok()) << all.error();
  EXPECT_THAT(all.value(), IsSubsetOf({"127.0.0.1", "::1"}));
  EXPECT_TRUE(std::is_sorted(all.value().begin(), all.value().end()));
}

TEST(OwnNames, BeginWithTheHostname) {
  char name[256]{};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  ASSERT_FALSE(OwnNames().empty());
  EXPECT_EQ(OwnNames().front(), name);
}

}  // namespace
}  // namespace persia::agent
