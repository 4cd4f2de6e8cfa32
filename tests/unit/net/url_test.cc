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

// GatewayAddressTest has bad hosts, ports and paths, with the reasons.
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

TEST(GatewayAddressTest, AcceptsWhatUsersWrite) {
  const struct {
    const char* text;
    const char* url;
  } kCases[] = {
      {"metrics_gateway:9091", "http://metrics_gateway:9091"},
      {"metrics_gateway", "http://metrics_gateway:9091"},
      {"host:9091/", "http://host:9091"},
      {"host:9091/push/gw/", "http://host:9091/push/gw"},
      {"host/push", "http://host:9091/push"},
      {"[::1]:9091", "http://[::1]:9091"},
      {"[2001:db8::7]", "http://[2001:db8::7]:9091"},
      {"http://host:9091", "http://host:9091"},
      {"http://host", "http://host:80"},
      {"https://host", "https://host:443"},
      {"HTTPS://gateway.example.com/a%20b/", "https://gateway.example.com:443/a%20b"},
      {"host:65535", "http://host:65535"},
  };
  for (const auto& [text, url] : kCases) {
    const Result<GatewayAddress> address = GatewayAddress::Parse(text);
    ASSERT_TRUE(address.ok()) << address.error();
    EXPECT_EQ(address.value().Url(), url) << text;
  }
}

TEST(GatewayAddressTest, RefusesTheRestAndSaysWhy) {
  const struct {
    const char* text;
    const char* why;
  } kCases[] = {
      {"", "it is empty"},
      {":9091", "the host is missing"},
      {"http://", "the host is missing"},
      {"http:///path", "the host is missing"},
      {"host:", "the port is not a number from 1 to 65535"},
      {"host:0", "the port is not a number"},
      {"host:65536", "the port is not a number"},
      {"host:9091x", "the port is not a number"},
      {"host:9091 ", "has a space or a control character"},
      {" host:9091", "has a space or a control character"},
      {"ho st:9091", "has a space or a control character"},
      {"h\xc3\xb6st:9091", "the host is not a name"},
      {"::1", "an IPv6 address needs brackets"},
      {"[::1", "not an IPv6 address"},
      {"[::g]:9091", "not an IPv6 address"},
      {"[::1]9091", "the port is not a number"},
      {"ftp://host", "the scheme is unknown (http, https)"},
      {"://host", "the scheme is unknown"},
      {"http://host/a b", "leave it out, or percent-encode it in the path"},
      {"http://host/\n", "has a space or a control character"},
      {"http://host/\x7f", "has a space or a control character"},
      {"http://host/\"", "percent-encoded"},
      {"gw-0:9091,gw-1:9091", "it is a list, and an agent pushes to one gateway; give one address, and other agents another"},
      {"https://gw/a,b", "a comma in a path is %2C"},
      {"dns+gw:9091", "dns+ stands for each address of a name, and an agent pushes to one gateway; leave dns+ out"},
      {"dns+https://gw", "leave dns+ out"},
  };
  for (const auto& [text, why] : kCases) {
    const Result<GatewayAddress> address = GatewayAddress::Parse(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_THAT(address.error(), HasSubstr(why));
    EXPECT_THAT(address.error(), HasSubstr("gateway address \"" + std::string(text) + "\""));
  }
}

TEST(GatewayAddressTest, RefusesAQueryWithoutRepeatingIt) {
  for (const char* text : {"http://host:9091?secret", "http://host:0/path?secret", "host#secret", "http://ho st?secret",
                           "ftp://host?secret", "://host?secret"}) {
    const Result<GatewayAddress> address = GatewayAddress::Parse(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_THAT(address.error(), HasSubstr("must not have a query or fragment"));
    EXPECT_THAT(address.error(), Not(HasSubstr("secret")));
  }
}

TEST(GatewayAddressTest, RefusesCredentialsWithoutRepeatingThem) {
  for (const char* text : {"http://user:secret@host:9091", "user:secret@host", "http://user:sec/ret@host", "a@secret@host",
                           "host?mail=a@secret", "http://user:pa?secret@host", "a,user:secret@b", "user:sec,ret@b",
                           "user:1?secret@host", "http://user:1#secret@host", "secret@"}) {
    const Result<GatewayAddress> address = GatewayAddress::Parse(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_THAT(address.error(), HasSubstr("must not contain a user and password"));
    EXPECT_THAT(address.error(), Not(HasSubstr("sec")));
  }
}

TEST(GatewayAddressTest, KnowsWhoIsOnThisHost) {
  for (const char* text : {"localhost:9091", "127.0.0.1:9091", "127.1.2.3", "[::1]:9091", "http://localhost/x"}) {
    EXPECT_TRUE(GatewayAddress::Parse(text).value().IsLoopback()) << text;
  }
  for (const char* text : {"metrics_gateway:9091", "128.0.0.1", "127.example.com", "[::2]:9091"}) {
    EXPECT_FALSE(GatewayAddress::Parse(text).value().IsLoopback()) << text;
  }
}

TEST(GatewayAddressTest, NamesHostAndPort) {
  EXPECT_EQ(GatewayAddress::Parse("https://host/x").value().HostAndPort(), "host:443");
  EXPECT_EQ(GatewayAddress::Parse("[::1]").value().HostAndPort(), "[::1]:9091");
}

}  // namespace
}  // namespace persia::agent
