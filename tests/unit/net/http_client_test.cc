#include "net/http_client.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "net/url.h"
#include "peers/scripted_peer.h"
#include "peers/socket.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class HttpClientTest : public ::testing::Test {
 protected:
  static Result<HttpResponse> Put(HttpClient& client, const ScriptedPeer& peer, std::string_view body = "x 1\n") {
    return client.Send({.method = "PUT",
                        .url = "http://" + peer.address() + "/metrics/job/a%20b",
                        .headers = {{"Content-Type", "text/plain"}},
                        .body = body});
  }
  // The error of one PUT to a peer that answers so.
  static std::string ErrorFrom(Reply reply, HttpClient::Options options = {}) {
    ScriptedPeer peer({std::move(reply)});
    HttpClient client(std::move(options));
    const Result<HttpResponse> response = Put(client, peer);
    if (response.ok()) return "status " + std::to_string(response.value().status);
    EXPECT_THAT(response.error(), StartsWith(peer.address() + ": "));
    return response.error();
  }
};

TEST_F(HttpClientTest, AnErrorHasHostAndPortAndNothingElseOfTheUrl) {
  HttpClient client({});
  for (const char* const rest : {"?token=secret", "/write?token=secret", "/secret", "#secret", ""}) {
    const auto response = client.Send({.method = "POST", .url = std::string("http://127.0.0.1:1") + rest});
    EXPECT_EQ(response.error(), "127.0.0.1:1: cannot connect: Connection refused") << rest;
  }
  EXPECT_THAT(client.Send({.method = "POST", .url = "http://user:secret@[::1]:1/"}).error(),
              StartsWith("[::1]:1: cannot connect: "));
}

TEST_F(HttpClientTest, SendsWhatItIsGivenAndReturnsTheAnswer) {
  ScriptedPeer peer({Reply::Status(202, "taken")});
  HttpClient client({.user_agent = "agent/1"});
  const Result<HttpResponse> response = Put(client, peer);
  ASSERT_TRUE(response.ok()) << response.error();
  EXPECT_EQ(response.value().status, 202);
  EXPECT_EQ(response.value().body, "taken");
  EXPECT_THAT(peer.requests().at(0),
              AllOf(StartsWith("PUT /metrics/job/a%20b HTTP/1.1\r\n"), HasSubstr("\r\nContent-Type: text/plain\r\n"),
                    HasSubstr("\r\nUser-Agent: agent/1\r\n"), Not(HasSubstr("Expect:")), EndsWith("\r\n\r\nx 1\n")));
}

TEST_F(HttpClientTest, AnAnswerCanBeReadPieceByPiece) {
  ScriptedPeer peer({Reply::Status(400, std::string(3 << 20, 'x'))});
  HttpClient client({.max_response_bytes = 100});
  size_t read = 0;
  const auto response =
      client.Send({.method = "GET", .url = "http://" + peer.address() + "/", .receive = [&](int status, auto piece) {
                     EXPECT_EQ(status, 400);
                     read += piece.size();
                     return true;
                   }});
  ASSERT_TRUE(response.ok()) << response.error();
  EXPECT_EQ(read, 3U << 20);
  EXPECT_THAT(response.value().body, SizeIs(100));
}

TEST_F(HttpClientTest, AReaderThatHasEnoughOfAnAnswerDoesNotWaitForTheRest) {
  ScriptedPeer peer({{"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nfirst", false}, Reply::Status(202)});
  HttpClient client({});
  const auto response = client.Send(
      {.method = "GET", .url = "http://" + peer.address() + "/", .receive = [](int, std::string_view) { return false; }});
  ASSERT_TRUE(response.ok()) << response.error();
  EXPECT_EQ(response.value().status, 200);
  EXPECT_EQ(Put(client, peer).value().status, 202);
}

TEST_F(HttpClientTest, KnowsHowLongAPeerAsksToBeLeftAlone) {
  ScriptedPeer peer({Reply::Raw("HTTP/1.1 503 Busy\r\nRetry-After: 17\r\nContent-Length: 0\r\n\r\n"), Reply::Status(503)});
  HttpClient client({});
  EXPECT_EQ(Put(client, peer).value().retry_after, 17s);
  EXPECT_EQ(Put(client, peer).value().retry_after, std::nullopt);
}

TEST_F(HttpClientTest, KeepsTheConnection) {
  ScriptedPeer peer({Reply::Status(200)});
  HttpClient client({});
  for (int i = 0; i < 5; ++i) {
    const Result<HttpResponse> response = Put(client, peer);
    ASSERT_TRUE(response.ok()) << response.error();
    EXPECT_EQ(response.value().new_connection, i == 0);
  }
  EXPECT_THAT(peer.requests(), SizeIs(5));
  EXPECT_EQ(peer.connections(), 1U);
}

TEST_F(HttpClientTest, AProgramThatIsStartedMeanwhileInheritsNoConnection) {
  ScriptedPeer peer({Reply::Status(200)});
  HttpClient client({});
  ASSERT_TRUE(Put(client, peer).ok());  // the connection stays open
  std::vector<int> of_connections;
  const auto is_peer = [&](int fd, auto get_name) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    return get_name(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 && address.sin_family == AF_INET &&
           peer.address().ends_with(":" + std::to_string(ntohs(address.sin_port)));
  };
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_in other{};
    socklen_t size = sizeof other;
    const bool connected = getpeername(fd, reinterpret_cast<sockaddr*>(&other), &size) == 0;
    if (connected && (is_peer(fd, getpeername) || is_peer(fd, getsockname))) of_connections.push_back(fcntl(fd, F_GETFD));
  }
  EXPECT_THAT(of_connections, SizeIs(2)) << "both ends";
  EXPECT_THAT(of_connections, Each(FD_CLOEXEC));
}

TEST_F(HttpClientTest, ConnectsAgainWhenThePeerHasClosed) {
  Reply then_closed = Reply::Status(200);
  then_closed.then_close = true;
  ScriptedPeer peer({then_closed});
  HttpClient client({});
  for (int i = 0; i < 3; ++i) {
    const Result<HttpResponse> response = Put(client, peer);
    ASSERT_TRUE(response.ok()) << response.error();
    EXPECT_TRUE(response.value().new_connection);
  }
  EXPECT_EQ(peer.connections(), 3U);
}

TEST_F(HttpClientTest, SendsALargeBodyWhole) {
  ScriptedPeer peer({Reply::Status(200)});
  HttpClient client({});
  const std::string body(20'000'000, 'x');
  ASSERT_TRUE(Put(client, peer, body).ok());
  EXPECT_TRUE(peer.requests().at(0).ends_with("\r\n\r\n" + body));
}

TEST_F(HttpClientTest, ARedirectIsAnAnswer) {
  EXPECT_EQ(ErrorFrom(Reply::Raw("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")),
            "status 302");
}

TEST_F(HttpClientTest, WhereARedirectLeadsIsToldUpToTheLengthOfAName) {
  const auto leads = [](const std::string& origin) {
    ScriptedPeer peer({Reply::Raw("HTTP/1.1 302 Found\r\nLocation: " + origin + "/path\r\nContent-Length: 0\r\n\r\n")});
    HttpClient client({});
    return Put(client, peer).value().redirects_to;
  };
  const std::string longest = "https://" + std::string(255, 'h') + ":65535";
  EXPECT_EQ(leads(longest), longest);
  EXPECT_THAT(leads("https://" + std::string(1000, 'h')), SizeIs(longest.size()));
}

TEST_F(HttpClientTest, AnotherPortGetsNoSecrets) {
  ScriptedPeer other({Reply::Status(401)});
  const auto redirect = [](const std::string& location) {
    return Reply{"HTTP/1.1 307 Moved\r\nLocation: " + location + "\r\nContent-Length: 0\r\n\r\n", false};
  };
  ScriptedPeer peer({redirect("/here"), redirect("http://" + other.address() + "/there"), Reply::Status(200)});
  HttpClient client({.access = {.bearer_token = "hunter2"}, .secrets = {"hunter3"}});
  const Result<HttpResponse> response = client.Send({.method = "POST",
                                                     .url = "http://" + peer.address() + "/first",
                                                     .headers = {{"X-Key", "hunter3"}, {"Content-Type", "text/plain"}},
                                                     .body = "x 1\n",
                                                     .follow_redirects = true});
  ASSERT_TRUE(response.ok()) << response.error();
  EXPECT_EQ(response.value().status, 401);
  EXPECT_TRUE(response.value().without_secrets);
  ASSERT_THAT(peer.requests(), SizeIs(2));
  EXPECT_THAT(peer.requests(), Each(AllOf(HasSubstr("Authorization: Bearer hunter2\r\n"), HasSubstr("X-Key: hunter3\r\n"))));
  EXPECT_THAT(peer.requests().at(1), StartsWith("POST /here "));
  ASSERT_THAT(other.requests(), SizeIs(1));
  EXPECT_THAT(other.requests().at(0), AllOf(StartsWith("POST /there "), HasSubstr("Content-Type: text/plain\r\n"),
                                            Not(HasSubstr("hunter")), Not(HasSubstr("Authorization")), EndsWith("x 1\n")));
}

TEST_F(HttpClientTest, ErrorsSayWhatHappened) {
  EXPECT_THAT(ErrorFrom(Reply::Silence(), {.total_timeout = 2s}), EndsWith("no whole answer within 2 s"));
  EXPECT_THAT(ErrorFrom(Reply::Raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")), EndsWith("the answer was cut off"));
  EXPECT_THAT(ErrorFrom(Reply::Raw("SSH-2.0-OpenSSH_9.2\r\n")), HasSubstr("the answer is not HTTP"));
  EXPECT_THAT(ErrorFrom(Reply::Close()), HasSubstr("the connection was closed without an answer"));
}

TEST_F(HttpClientTest, ARefusalIsOneAlsoIfItsTextIsCutOff) {
  ScriptedPeer peer({Reply::Raw("HTTP/1.1 400 Bad Request\r\nContent-Length: 9\r\n\r\nhalf")});
  HttpClient client({});
  const Result<HttpResponse> response = Put(client, peer);
  ASSERT_TRUE(response.ok()) << response.error();
  EXPECT_EQ(response.value().status, 400);
  EXPECT_EQ(response.value().body, "half");
}

TEST_F(HttpClientTest, KeepsNoMoreOfABodyThanAllowed) {
  ScriptedPeer peer({Reply::Status(400, std::string(1'000'000, 'e'))});
  HttpClient client({.max_response_bytes = 1000});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Put(client, peer).value().body, std::string(1000, 'e'));
  EXPECT_EQ(peer.connections(), 1U);
}

TEST_F(HttpClientTest, InterruptEndsTheRequestUnderWayAndHoldsUntilRearm) {
  ScriptedPeer peer({Reply::Silence(), Reply::Status(200)});
  HttpClient client({.total_timeout = 600s});
  std::thread interrupter([&] {
    peer.WaitForRequests(1);
    client.Interrupt();
  });
  const Result<HttpResponse> response = Put(client, peer);
  interrupter.join();
  ASSERT_FALSE(response.ok());
  EXPECT_THAT(response.error(), EndsWith("the request was interrupted"));
  EXPECT_TRUE(client.interrupted());
  EXPECT_FALSE(Put(client, peer).ok());
  EXPECT_THAT(peer.requests(), SizeIs(1));
  client.Rearm();
  EXPECT_TRUE(Put(client, peer).ok());
}

TEST_F(HttpClientTest, TheEnvironmentsProxyIsNotUsed) {
  const Socket unreachable = Socket::Reserve();
  const std::string proxy = "http://127.0.0.1:" + std::to_string(unreachable.port());
  setenv("http_proxy", proxy.c_str(), 1);
  setenv("all_proxy", proxy.c_str(), 1);
  ScriptedPeer peer({Reply::Status(200)});
  HttpClient client({});
  const Result<HttpResponse> response = Put(client, peer);
  unsetenv("http_proxy");
  unsetenv("all_proxy");
  EXPECT_TRUE(response.ok()) << response.error();
}

TEST_F(HttpClientTest, SomeHostsAreReachedWithoutTheProxy) {
  ScriptedPeer peer({Reply::Status(200)});
  const Socket unreachable = Socket::Reserve();
  const std::string port = std::to_string(peer.port());
  const auto is_reached = [&](const std::string& no_proxy) {
    HttpClient client({.proxy = "http://127.0.0.1:" + std::to_string(unreachable.port()), .no_proxy = no_proxy});
    return Put(client, peer).ok();
  };
  for (const std::string& direct :
       {std::string("example.com,127.0.0.0/8"), "example.com, 127.0.0.1:" + port, std::string("a,*")}) {
    EXPECT_TRUE(is_reached(direct)) << direct;
  }
  for (const std::string& other : {std::string("example.com"), std::string("127.0.0.1:1"), "127.0.0.2:" + port}) {
    EXPECT_FALSE(is_reached(other)) << other;
  }
}

TEST_F(HttpClientTest, AProxysPasswordIsNotInErrors) {
  HttpClient client({.proxy = "http://user:hunter2@[not an address]:1"});
  const Result<HttpResponse> response = client.Send({.method = "GET", .url = "http://metrics_gateway:9091/x"});
  ASSERT_FALSE(response.ok());
  EXPECT_THAT(response.error(), Not(HasSubstr("hunter2")));
}

TEST_F(HttpClientTest, WhatAProxySendsBackIsFreeOfItsPassword) {
  ScriptedPeer proxy({Reply::Status(407, "Proxy-Authorization: Basic dXNlcjpodW50ZXIyIQ== is user:hunter2! or hunter2%21")});
  HttpClient client({.proxy = "http://user:hunter2%21@" + proxy.address()});
  const Result<HttpResponse> response = client.Send({.method = "GET", .url = "http://metrics_gateway:9091/x"});
  ASSERT_TRUE(response.ok()) << response.error();
  EXPECT_THAT(proxy.requests().at(0), HasSubstr("Proxy-Authorization: Basic dXNlcjpodW50ZXIyIQ=="));
  EXPECT_EQ(response.value().body, "Proxy-Authorization: Basic *** is *** or ***");
}

TEST_F(HttpClientTest, ADeadProxyIsNamed) {
  const Socket unreachable = Socket::Reserve();
  const std::string proxy = "127.0.0.1:" + std::to_string(unreachable.port());
  HttpClient client({.proxy = "http://user:hunter2@" + proxy});
  EXPECT_EQ(client.Send({.method = "GET", .url = "http://metrics_gateway:9091/x"}).error(),
            "metrics_gateway:9091: cannot connect to the proxy " + proxy + ": Connection refused");
  HttpClient unknown({.connect_timeout = 60s, .total_timeout = 60s, .proxy = "http://user:hunter2@nowhere.invalid:1"});
  EXPECT_THAT(unknown.Send({.method = "GET", .url = "http://metrics_gateway:9091/x"}).error(),
              StartsWith("metrics_gateway:9091: the name of the proxy nowhere.invalid:1 cannot be resolved"));
}

// libcurl keeps the number of an earlier error.
TEST_F(HttpClientTest, ACauseIsNotThatOfAnEarlierError) {
  std::string headers;
  for (int i = 0; i < 400; ++i) headers += "X: " + std::string(1000, 'x') + "\r\n";
  ScriptedPeer peer({Reply::Raw("HTTP/1.1 400 Bad Request\r\n" + headers + "\r\n")});
  const Socket unreachable = Socket::Reserve();
  HttpClient client({});
  ASSERT_THAT(client.Send({.method = "GET", .url = "http://127.0.0.1:" + std::to_string(unreachable.port()) + "/"}).error(),
              HasSubstr("Connection refused"));
  EXPECT_THAT(Put(client, peer).error(), AllOf(Not(HasSubstr("refused")), HasSubstr("Too large response headers")));
}

TEST_F(HttpClientTest, AnAnswerWithoutEndIsEnded) {
  // Promised: more than the peer sends.
  const Reply endless{"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n" + std::string(4'000'000, 'e'), false};
  ScriptedPeer peer({endless});
  HttpClient client({.total_timeout = 600s, .max_response_bytes = 1000});
  const Result<HttpResponse> response = Put(client, peer);
  ASSERT_TRUE(response.ok()) << response.error();
  EXPECT_EQ(response.value().body, std::string(1000, 'e'));
}

TEST(ProxyEnvironment, IsFoundAsInGo) {
  const auto find = [](bool for_https, std::map<std::string, std::string> variables) {
    const Proxy proxy = FindProxy(for_https, [&](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
    return proxy.url + " " + proxy.no_proxy;
  };
  EXPECT_EQ(find(false, {}), " ");
  EXPECT_EQ(find(false, {{"HTTPS_PROXY", "http://p"}, {"ALL_PROXY", "http://q"}}), " ");
  EXPECT_EQ(find(true, {{"https_proxy", "http://p"}, {"NO_PROXY", "a"}}), "http://p localhost,127.0.0.0/8,::1,a");
  EXPECT_EQ(find(false, {{"HTTP_PROXY", "socks5://p"}, {"http_proxy", "q"}}), "socks5h://p localhost,127.0.0.0/8,::1");
  EXPECT_EQ(find(false, {{"http_proxy", "q"}, {"no_proxy", "*"}}), "q *");
}

TEST(NoProxy, HasTheFormsOfGo) {
  const auto of_port_80 = [](const char* list) { return NoProxyForCurl(list, 80); };
  EXPECT_EQ(of_port_80(""), "");
  EXPECT_EQ(of_port_80("a, .b ,,10.0.0.0/8"), "a,.b,10.0.0.0/8");
  EXPECT_EQ(of_port_80("a:80,b:8080,c:80"), "a,c");
  EXPECT_EQ(of_port_80("a,*,b"), "*");
  EXPECT_EQ(of_port_80("*.a,*.b:80"), ".a,.b");
  EXPECT_EQ(of_port_80("::1,fe80::/10,[::2],[::3]:80,[::4]:81"), "::1,fe80::/10,::2,::3");
}

TEST_F(HttpClientTest, OtherProtocolsAreRefused) {
  HttpClient client({});
  const Result<HttpResponse> response = client.Send({.method = "GET", .url = "file:///etc/hostname"});
  ASSERT_FALSE(response.ok());
  EXPECT_THAT(response.error(), ContainsRegex("[Pp]rotocol"));
}

}  // namespace
}  // namespace persia::agent
