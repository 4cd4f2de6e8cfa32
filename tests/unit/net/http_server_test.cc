#include "net/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/http_client.h"
#include "peers/socket.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class HttpServerTest : public ::testing::Test {
 protected:
  void Serve(HttpServer::Options options = {}) {
    Result<std::unique_ptr<HttpServer>> server = HttpServer::Start(std::move(options), routes_);
    ASSERT_TRUE(server.ok()) << server.error();
    server_ = std::move(server).value();
  }
  static std::string StartError(const std::string& listen_address) {
    Result<std::unique_ptr<HttpServer>> server = HttpServer::Start({.listen_address = listen_address}, {});
    return server.ok() ? "listens on " + server.value()->address() : server.error();
  }
  // The whole answer to these bytes.
  [[nodiscard]] std::string Ask(const std::string& request) const {
    const Socket connection = Socket::Connect(server_->port());
    connection.Send(request);
    return connection.ReadToEnd();
  }
  [[nodiscard]] std::string Get(const std::string& path) const { return Ask("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"); }

  std::vector<Route> routes_{
      {"GET", "/metrics", [](const ServerRequest&) { return ServerResponse{.content_type = "text/x", .body = "x 1\n"}; }},
      {"POST", "/echo", [](const ServerRequest& request) { return ServerResponse{.body = request.body}; }},
  };
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersByPath) {
  Serve();
  EXPECT_THAT(Get("/metrics"), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\nContent-Type: text/x\r\n"),
                                     HasSubstr("\r\nContent-Length: 4\r\n"), EndsWith("\r\n\r\nx 1\n")));
}

TEST_F(HttpServerTest, HeadIsGetWithoutTheBody) {
  Serve();
  EXPECT_THAT(Ask("HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\nContent-Length: 4\r\n"), EndsWith("\r\n\r\n")));
}

TEST_F(HttpServerTest, ATextThatOthersHaveIsABodyToo) {
  const auto text = std::make_shared<const std::string>("shared\n");
  for (const auto& [path, shared] : {std::pair("/shared", text), {"/empty", std::make_shared<const std::string>()}}) {
    routes_.push_back({"GET", path, [shared = shared](const ServerRequest&) {
                         return ServerResponse{.body = "not this", .shared_body = shared};
                       }});
  }
  Serve();
  EXPECT_THAT(Get("/shared"), AllOf(HasSubstr("\r\nContent-Length: 7\r\n"), EndsWith("\r\n\r\nshared\n")));
  EXPECT_THAT(Ask("HEAD /shared HTTP/1.1\r\nHost: a\r\n\r\n"),
              AllOf(HasSubstr("\r\nContent-Length: 7\r\n"), EndsWith("\r\n\r\n")));
  EXPECT_THAT(Get("/empty"), AllOf(HasSubstr("\r\nContent-Length: 0\r\n"), EndsWith("\r\n\r\n")));
}

TEST_F(HttpServerTest, AnUnknownPathIsNotFound) {
  Serve();
  EXPECT_THAT(Get("/nothing"), AllOf(StartsWith("HTTP/1.1 404 Not Found\r\n"), HasSubstr("\r\nContent-Type: text/plain"),
                                     EndsWith("\r\n\r\nNot found.\n")));
  EXPECT_THAT(Get("/metrics/more"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Get("/../metrics/../../etc/hostname"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(HttpServerTest, AnotherMethodIsNotAllowed) {
  Serve();
  EXPECT_THAT(Ask("DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"), HasSubstr("\r\nAllow: GET, HEAD\r\n")));
  EXPECT_THAT(Get("/echo"), AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("\r\nAllow: POST\r\n")));
}

TEST_F(HttpServerTest, TheHandlerSeesTheRequest) {
  ServerRequest seen;
  routes_ = {{"GET", "/a b", [&](const ServerRequest& request) {
                seen = request;
                return ServerResponse{.status = 204, .headers = {{"X-Mine", "yes"}}};
              }}};
  Serve();
  EXPECT_THAT(Ask("GET /a%20b?x=1&y=%20 HTTP/1.1\r\nHost: a\r\naccept: text/html\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 204 "), HasSubstr("\r\nX-Mine: yes\r\n")));
  EXPECT_EQ(seen.method, "GET");
  EXPECT_EQ(seen.path, "/a b");
  EXPECT_EQ(seen.query, "x=1&y=%20");
  EXPECT_EQ(seen.Header("Accept"), "text/html");
  EXPECT_EQ(seen.Header("Accept-Encoding"), "");
}

TEST_F(HttpServerTest, BodiesAreReadUpToTheLimit) {
  Serve({.max_body_bytes = 8});
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n12345678"), EndsWith("\r\n\r\n12345678"));
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789"), StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpServerTest, ATooLargeBodyIsNotWaitedFor) {
  Serve({.request_timeout = 600s});
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + std::string(1000, 'x')),
              StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpServerTest, ABodyWithoutItsLengthIsRefusedUnread) {
  Serve({.request_timeout = 600s});
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\nabc"),
              StartsWith("HTTP/1.1 411 "));
}

TEST_F(HttpServerTest, ATargetThatIsNoPathOfOursIsABadRequest) {
  Serve({.request_timeout = 600s});
  for (const char* target : {"GET http://a:1/metrics", "OPTIONS *", "GET *", "OPTIONS http://a:1/"}) {
    const std::string answer = Ask(std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_THAT(answer,
                AllOf(StartsWith("HTTP/1.1 400 Bad Request\r\n"), EndsWith("\r\n\r\nThe target is no path of this server.\n")));
    EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << "one answer";
  }
}

TEST_F(HttpServerTest, ABodyThatTricklesIsGivenUp) {
  Serve({.request_timeout = 2s});
  const Socket connection = Socket::Connect(server_->port());
  connection.Send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n");
  std::jthread trickle([fd = connection.fd()](const std::stop_token& stop) {
    while (!stop.stop_requested() && send(fd, "x", 1, MSG_NOSIGNAL) == 1) std::this_thread::sleep_for(10ms);
  });
  EXPECT_THAT(connection.ReadToEnd(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpServerTest, AnAnswerThatNobodyTakesIsGivenUp) {
  const std::string body(20'000'000, 'x');
  routes_.push_back({"GET", "/large", [&](const ServerRequest&) { return ServerResponse{.body = body}; }});
  Serve({.threads = 1, .request_timeout = 200ms});
  const Socket never_reads = Socket::Connect(server_->port());
  never_reads.Send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200 "));  // by the one worker that there is
}

TEST_F(HttpServerTest, TheGuardIsAskedFirstWhateverThePath) {
  Serve({.request_timeout = 600s, .guard = [](const ServerRequest& request) -> std::optional<ServerResponse> {
           if (request.Header("Authorization") == "me") return std::nullopt;
           return ServerResponse{.status = 401, .body = "Who?\n"};
         }});
  EXPECT_THAT(Get("/metrics"), AllOf(StartsWith("HTTP/1.1 401 "), EndsWith("\r\n\r\nWho?\n")));
  EXPECT_THAT(Get("/nothing"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(Ask("GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: me\r\n\r\n"), EndsWith("x 1\n"));
}

TEST_F(HttpServerTest, AnAbsoluteUriIsItsPath) {
  Serve();
  EXPECT_THAT(Get("http://somewhere:" + std::to_string(server_->port()) + "/metrics"), EndsWith("\r\n\r\nx 1\n"));
}

TEST_F(HttpServerTest, HeadersAreReadUpToTheLimit) {
  Serve({.max_header_bytes = 2048});
  EXPECT_THAT(Ask("GET /metrics HTTP/1.1\r\nHost: a\r\nX: " + std::string(4000, 'x') + "\r\n\r\n"), StartsWith("HTTP/1.1 4"));
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200 "));
}

// civetweb drops headers beyond its 64th.
TEST_F(HttpServerTest, TheGuardSeesAllHeadersOrTheRequestIsRefused) {
  Serve({.guard = [](const ServerRequest& request) -> std::optional<ServerResponse> {
    if (request.Header("Origin").empty()) return std::nullopt;
    return ServerResponse{.status = 403};
  }});
  const auto ask = [&](int headers, const std::string& request = "GET /metrics") {
    std::string text = request + " HTTP/1.1\r\nHost: a\r\n";
    for (int i = 2; i < headers; ++i) text += "X-" + std::to_string(i) + ": 1\r\n";
    return Ask(text + "Origin: http://evil.example\r\n\r\n");
  };
  EXPECT_THAT(ask(63), StartsWith("HTTP/1.1 403 "));
  for (const int headers : {64, 65, 66, 150, 1000}) EXPECT_THAT(ask(headers), StartsWith("HTTP/1.1 431 ")) << headers;
  EXPECT_THAT(ask(150, "POST /echo"), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask(150, "GET /nothing"), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, GarbageIsABadRequest) {
  Serve();
  EXPECT_THAT(Ask("\x16\x03\x01 hello\r\n\r\n"), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("\r\nContent-Type: text/plain")));
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, AHandlerThatThrowsCostsItsRequestOnly) {
  std::vector<std::string> log;
  routes_.push_back({"GET", "/throws", [](const ServerRequest&) -> ServerResponse { throw std::runtime_error("no luck"); }});
  Serve({.log = [&](const std::string& message) { log.push_back(message); }});
  EXPECT_THAT(Get("/throws"), StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200 "));
  server_.reset();
  EXPECT_THAT(log, ::testing::Contains("GET /throws: no luck"));
}

TEST_F(HttpServerTest, ALargeAnswerArrivesWhole) {
  const std::string body(20'000'000, 'x');
  routes_.push_back({"GET", "/large", [&](const ServerRequest&) { return ServerResponse{.body = body}; }});
  Serve();
  EXPECT_TRUE(Get("/large").ends_with("\r\n\r\n" + body));
}

TEST_F(HttpServerTest, RequestsAreAnsweredSideBySide) {
  std::latch both(2);
  routes_.push_back({"GET", "/meet", [&](const ServerRequest&) {
                       both.arrive_and_wait();
                       return ServerResponse{.body = "met"};
                     }});
  Serve({.threads = 2});
  std::string other;
  std::thread thread([&] { other = Get("/meet"); });
  EXPECT_THAT(Get("/meet"), EndsWith("met"));
  thread.join();
  EXPECT_THAT(other, EndsWith("met"));
}

// Each client holds the only worker, until its time is up.
TEST_F(HttpServerTest, AClientThatStallsLosesItsWorkerInTime) {
  routes_.push_back({"GET", "/large", [](const ServerRequest&) { return ServerResponse{.body = std::string(8 << 20, 'x')}; }});
  Serve({.threads = 1, .request_timeout = 200ms});
  for (const std::string stall :
       {"", "GET /metr", "GET /metrics HTTP/1.1\r\nX: ", "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf",
        "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"}) {
    const Socket stalled = Socket::Connect(server_->port());
    stalled.Send(stall);
    EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200 ")) << stall;
  }
}

// It makes progress all the time, so that no single write takes long.
TEST_F(HttpServerTest, AClientThatReceivesSlowlyLosesItsWorkerInTime) {
  routes_.push_back({"GET", "/large", [](const ServerRequest&) { return ServerResponse{.body = std::string(8 << 20, 'x')}; }});
  Serve({.threads = 1, .request_timeout = 200ms, .min_bytes_per_second = 64 << 20});
  const Socket slow = Socket::Connect(server_->port());
  const int buffer_bytes = 4096;
  ASSERT_EQ(setsockopt(slow.fd(), SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes), 0);
  slow.Send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  std::atomic<int> pieces = 0;
  std::jthread receiver([&, fd = slow.fd()](const std::stop_token& stop) {
    char buffer[4096];
    for (; !stop.stop_requested() && recv(fd, buffer, sizeof buffer, 0) > 0; ++pieces) std::this_thread::sleep_for(20ms);
  });
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200 "));
  EXPECT_LT(pieces, 512) << "a quarter of the answer: the kernel's buffers have less than the rest";
}

TEST_F(HttpServerTest, StopsWhileClientsStall) {
  Serve({.threads = 1, .request_timeout = 600s});
  const Socket stalled = Socket::Connect(server_->port());
  stalled.Send("GET /metr");
  const uint16_t port = server_->port();
  server_.reset();
  EXPECT_ANY_THROW(Socket::Connect(port));
}

// Such as the one that tells an open page how the job ended.
TEST_F(HttpServerTest, AnAnswerThatHasBegunArrivesWholeAlthoughTheServerStops) {
  const std::string body(1'000'000, 'x');
  std::latch asked(1);
  std::latch ends(1);
  std::latch stops(1);
  routes_.push_back({"GET", "/end", [&](const ServerRequest&) {
                       asked.count_down();
                       ends.wait();
                       return ServerResponse{.body = body};
                     }});
  Serve({.threads = 1});
  std::string answer;
  std::thread client([&] { answer = Get("/end"); });
  asked.wait();
  std::thread stopper([&] {
    stops.count_down();
    server_.reset();
  });
  stops.wait();
  // Time in which a server that does not wait for its answers stops; one that does passes however long this takes.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ends.count_down();
  client.join();
  stopper.join();
  EXPECT_TRUE(answer.ends_with("\r\n\r\n" + body)) << answer.size();
}

TEST_F(HttpServerTest, PortZeroIsAFreePort) {
  Serve({.listen_address = "localhost:0"});
  EXPECT_NE(server_->port(), 0);
  EXPECT_EQ(server_->address(), "127.0.0.1:" + std::to_string(server_->port()));
  EXPECT_FALSE(server_->fell_back());
}

TEST_F(HttpServerTest, ABusyPortIsToldApart) {
  const Socket other = Socket::Listen();
  const std::string address = "127.0.0.1:" + std::to_string(other.port());
  EXPECT_EQ(StartError(address), "listen_address \"" + address + "\": in use by pid " + std::to_string(getpid()) + " (" +
                                     std::string(program_invocation_short_name) +
                                     "); give another port, or 0 for any free one");
  Serve({.listen_address = address, .fall_back_to_free_port = true});
  EXPECT_TRUE(server_->fell_back());
  EXPECT_NE(server_->port(), other.port());
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, AddressesThatCannotBeServedAreRefused) {
  EXPECT_THAT(StartError("192.0.2.1:0"), EndsWith("cannot listen: Cannot assign requested address"));
  for (const std::string address : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:80x", "example.com:80",
                                    "::1", "::1:80", "[]:80", "[::1]", "[::g]:80", "[127.0.0.1]:80", "[::1:80"}) {
    EXPECT_THAT(StartError(address),
                StartsWith("listen_address \"" + address + "\" is not an IP address and a port (127.0.0.1:19091; "));
  }
}

#if PERSIA_DEBIANS_CIVETWEB

TEST_F(HttpServerTest, TlsIsRefused) {
  EXPECT_THAT(HttpServer::WhyNoTls(), AllOf(StartsWith("the web server library of this build, civetweb 1."),
                                            HasSubstr("build the agent with the one of agent/net/build_civetweb")));
}

// Debian 13's has it.
TEST_F(HttpServerTest, Ipv6IsServedOrRefusedBeforeTheStart) {
  if (HttpServer::CheckAddress("[::1]:0").ok()) {
    Serve({.listen_address = "[::1]:0"});
    EXPECT_EQ(server_->address(), "[::1]:" + std::to_string(server_->port()));
  } else {
    EXPECT_THAT(StartError("[::1]:9464"),
                HasSubstr("\"[::1]:9464\" is an IPv6 address, which the web server library of this build"));
  }
}

#else

TEST_F(HttpServerTest, TlsIsServed) { EXPECT_EQ(HttpServer::WhyNoTls(), ""); }  // tests/e2e/test_pages_tls.py

TEST_F(HttpServerTest, Ipv6IsServed) {
  for (const std::string ip : {"::1", "::"}) {
    Serve({.listen_address = "[" + ip + "]:0"});
    EXPECT_EQ(server_->address(), "[" + ip + "]:" + std::to_string(server_->port()));
    HttpClient client({});
    const auto response = client.Send({.method = "GET", .url = "http://[::1]:" + std::to_string(server_->port()) + "/metrics"});
    ASSERT_TRUE(response.ok()) << response.error();
    EXPECT_EQ(response.value().body, "x 1\n");
    if (ip == "::") {
      EXPECT_THAT(Get("/metrics"), EndsWith("x 1\n")) << "over IPv4";
    }
    server_.reset();
  }
}

#endif

// The signals that each of the server's threads has blocked. Such a thread gives itself a name once it runs; before, glibc
// holds all of its signals back, so that there is nothing to see.
std::vector<unsigned long long> BlockedByCivetweb() {
  std::vector<unsigned long long> blocked;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    bool is_civetweb = false;
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("Name:")) is_civetweb = line.find("civetweb") != std::string::npos;
      if (is_civetweb && line.starts_with("SigBlk:")) blocked.push_back(std::stoull(line.substr(7), nullptr, 16));
    }
  }
  return blocked;
}

TEST_F(HttpServerTest, SignalsAreLeftToTheProgram) {
  struct sigaction before {};
  sigaction(SIGCHLD, nullptr, &before);
  Serve({.threads = 3});
  struct sigaction after {};
  sigaction(SIGCHLD, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);

  std::vector<unsigned long long> threads;
  while (threads.size() < 4) {  // three workers, and the one that accepts
    std::this_thread::yield();
    threads = BlockedByCivetweb();
  }
  for (unsigned long long blocked : threads) {
    EXPECT_TRUE((blocked >> (SIGTERM - 1)) & 1);
    EXPECT_TRUE((blocked >> (SIGCHLD - 1)) & 1);
  }
}

}  // namespace
}  // namespace persia::agent
