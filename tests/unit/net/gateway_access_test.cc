// Credentials on their way to a peer, and in its answers. tests/e2e/test_tls.py tests TLS.
#include "net/gateway_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>

#include "net/http_client.h"
#include "peers/scripted_peer.h"
#include "temporary_directory.h"

namespace persia::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Result<HttpResponse> Put(const ScriptedPeer& peer, GatewayAccessOptions access, size_t max_response_bytes = 65536) {
  HttpClient client({.max_response_bytes = max_response_bytes, .access = std::move(access)});
  return client.Send({.method = "PUT", .url = "http://" + peer.address() + "/", .headers = {}, .body = "x 1\n"});
}

TEST(GatewayAccessTest, BasicIsUserAndPasswordInBase64) {
  // One for each length of the last group, and the example of RFC 7617.
  struct {
    const char* user;
    const char* password;
    const char* base64;
  } const cases[] = {{"a", "b", "YTpi"},
                     {"a", "bc", "YTpiYw=="},
                     {"a", "bcd", "YTpiY2Q="},
                     {"Aladdin", "open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},
                     {"u", "\xff\xfe", "dTr//g=="}};
  for (const auto& one : cases) {
    ScriptedPeer peer({Reply::Status(200)});
    ASSERT_TRUE(Put(peer, {.username = one.user, .password = one.password}).ok());
    EXPECT_THAT(peer.requests().at(0), HasSubstr("\r\nAuthorization: Basic " + std::string(one.base64) + "\r\n"));
  }
}

TEST(GatewayAccessTest, BearerIsTheTokenUnlessItHasAnotherType) {
  ScriptedPeer peer({Reply::Status(200)});
  ASSERT_TRUE(Put(peer, {.bearer_token = "abc.def-1"}).ok());
  ASSERT_TRUE(Put(peer, {.bearer_token = "abc", .token_type = "Token"}).ok());
  ASSERT_TRUE(Put(peer, {}).ok());
  EXPECT_THAT(peer.requests().at(0), HasSubstr("\r\nAuthorization: Bearer abc.def-1\r\n"));
  EXPECT_THAT(peer.requests().at(1), HasSubstr("\r\nAuthorization: Token abc\r\n"));
  EXPECT_THAT(peer.requests().at(2), Not(HasSubstr("Authorization")));
}

TEST(GatewayAccessTest, AUserMayBeInAFileAndHaveNoPassword) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "user") << "Aladdin\n";
  ScriptedPeer peer({Reply::Status(200), Reply::Status(200)});
  ASSERT_TRUE(Put(peer, {.username_file = directory / "user", .password = "open sesame"}).ok());
  ASSERT_TRUE(Put(peer, {.username = "a"}).ok());
  EXPECT_THAT(peer.requests().at(0), HasSubstr("\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"));
  EXPECT_THAT(peer.requests().at(1), HasSubstr("\r\nAuthorization: Basic YTo=\r\n"));
}

TEST(GatewayAccessTest, AnEncryptedKeyIsRefusedAndNotQuoted) {
  const ScriptedPeer peer({Reply::Status(200)});
  const Result<HttpResponse> response = Put(peer, {.cert = "-----BEGIN A", .key = "-----BEGIN ENCRYPTED hunter2"});
  ASSERT_FALSE(response.ok());
  EXPECT_THAT(response.error(), AllOf(HasSubstr("client key: is encrypted"), Not(HasSubstr("hunter2"))));
}

TEST(GatewayAccessTest, AFileThatCannotBeReadSendsNothing) {
  ScriptedPeer peer({Reply::Status(200)});
  const Result<HttpResponse> response = Put(peer, {.bearer_token_file = "/nonexistent/token"});
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error(),
            peer.address() + ": bearer token file \"/nonexistent/token\": cannot be read: No such file or directory");
  EXPECT_TRUE(peer.requests().empty());
}

TEST(GatewayAccessTest, WhatThePeerSendsBackIsFreeOfSecrets) {
  const std::string password = "p&ss \"w0rd\"";
  ScriptedPeer peer({Reply::Status(401, "Authorization: Basic dTpwJnNzICJ3MHJkIg== is u:" + password +
                                            " or \"p&ss \\\"w0rd\\\"\", p&amp;ss &quot;w0rd&quot;, p%26ss%20%22w0rd%22.")});
  const Result<HttpResponse> response = Put(peer, {.username = "u", .password = password});
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response.value().body, "Authorization: Basic *** is u:*** or \"***\", ***, ***.");
}

TEST(GatewayAccessTest, FurtherSecretsAreRemoved) {
  ScriptedPeer peer({Reply::Status(404, "no /write?token=SECRET%20ONE&db=1 with X-Api-Key: SECRETTWO, token 'SECRET ONE'")});
  HttpClient client({.secrets = {"token=SECRET%20ONE&db=1", "SECRET%20ONE", "SECRET ONE", "1", "SECRETTWO"}});
  const Result<HttpResponse> response = client.Send({.method = "GET", .url = "http://" + peer.address() + "/"});
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response.value().body, "no /write?*** with X-Api-Key: ***, token '***'");
}

TEST(GatewayAccessTest, AnAnswerCutShortDoesNotEndInHalfASecret) {
  ScriptedPeer peer({Reply::Status(400, "bad token: hunter2-hunter3")});
  const Result<HttpResponse> response = Put(peer, {.bearer_token = "hunter2-hunter3"}, 18);
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response.value().body, "bad token:");
}

TEST(GatewayAccessTest, ServerNameKeepsTheHostOfTheAddress) {
  ScriptedPeer peer({Reply::Status(200)});
  HttpClient client({.access = {.server_name = "gateway.example.com"}});
  ASSERT_TRUE(
      client.Send({.method = "PUT", .url = "http://" + peer.address() + "/a%20b", .headers = {}, .body = "x 1\n"}).ok());
  EXPECT_THAT(peer.requests().at(0), AllOf(HasSubstr("PUT /a%20b HTTP/1.1\r\n"),
                                           HasSubstr("\r\nHost: " + peer.address() + "\r\n"), Not(HasSubstr("example.com"))));
}

}  // namespace
}  // namespace persia::agent
