#include "net/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace persia::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(UrlTest, HasItsParts) {
  const auto url = Url::Parse("HTTP://alice:secret@Db:8428/api/v1/../write%20x?token=secret#part");
  ASSERT_TRUE(url.ok()) << url.error();
  EXPECT_EQ(url.value().scheme(), "http");
  EXPECT_EQ(url.value().host(), "Db");
  EXPECT_EQ(url.value().port(), 8428);
  EXPECT_EQ(url.value().path(), "/api/v1/../write%20x");
  EXPECT_TRUE(url.value().has_user() && url.value().has_query() && url.value().has_fragment());
  EXPECT_EQ(url.value().HostAndPort(), "Db:8428");
  EXPECT_EQ(url.value().Origin(), "http://Db:8428");
  EXPECT_EQ(url.value().Shown(), "http://Db:8428/api/v1/../write%20x?...");
}

TEST(UrlTest, MayBeShort) {
  const auto url = Url::Parse("https://[::1]");
  ASSERT_TRUE(url.ok()) << url.error();
  EXPECT_TRUE(url.value().IsIpv6());
  EXPECT_EQ(url.value().host(), "::1");
  EXPECT_EQ(url.value().port(), std::nullopt);
  EXPECT_EQ(url.value().PortOrDefault(), 443);
  EXPECT_EQ(url.value().HostAndPort(), "[::1]");
  EXPECT_EQ(url.value().Origin(), "https://[::1]:443");
  EXPECT_FALSE(url.value().has_user() || url.value().has_query() || url.value().has_fragment());
}

// gateway_address_test.cc has bad hosts, ports and paths, with the reasons.
TEST(UrlTest, RefusesTheRest) {
  for (const std::string text : {"", "host", "http:host", "http:/host", "//host", "http://?x", "x://host"}) {
    const auto url = Url::Parse(text);
    EXPECT_FALSE(url.ok()) << text;
  }
  EXPECT_FALSE(Url::Parse(std::string("http://host\0.example", 20)).ok());
}

TEST(ShownAddressTest, HasNoUserPasswordQueryOrFragment) {
  const struct {
    const char* text;
    const char* shown;
  } kCases[] = {
      {"host:1", "host:1"},
      {"no address at all", "no address at all"},
      {"http://host:1/path", "http://host:1/path"},
      {"http://user:SECRET@host:1/path?token=SECRET", "http://host:1/path?..."},
      {"user:SECRET@host:1/path", "host:1/path"},
      {"host:1/path?token=SECRET", "host:1/path?..."},
      {"http://host/#SECRET", "http://host/"},
      {"http://user:SEC/RET@host", "***"},
      {"http://user:SEC?RET@host", "***"},
      {"user:1?SECRET@host", "***"},
      {"http://user:1/SECRET@host", "***"},
      {"host?mail=me@SECRET", "***"},
      {"ftp://host?SECRET", "***"},
  };
  for (const auto& [text, shown] : kCases) {
    EXPECT_EQ(ShownAddress(text), shown) << text;
    EXPECT_THAT(ShownAddress(text), Not(HasSubstr("SEC")));
  }
}

}  // namespace
}  // namespace persia::agent
