// Any bytes, sent to the agent's own web server: it answers by HTTP or closes the connection, and still answers others.
//
// One server with the agent's routes serves all inputs. An input is sent over a new connection, which is then closed for
// sending, and the answer is read to its end.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/http_server.h"

namespace {

using persia::agent::HttpServer;
using persia::agent::ServerRequest;
using persia::agent::ServerResponse;

// So often it is asked for a page in good order.
constexpr uint64_t kInputsBetweenChecks = 64;
// Longer than a request may take, much shorter than libFuzzer's patience.
constexpr time_t kPatienceSeconds = 5;

void Require(bool holds, const char* what) {
  if (!holds) {
    std::perror(what);
    std::abort();
  }
}

// Looks at all that a handler may look at.
ServerResponse Describe(const ServerRequest& request) {
  std::string seen = request.method + ' ' + request.path + '?' + request.query + '\n';
  for (const auto& [name, value] : request.headers) seen += name + ": " + value + '\n';
  seen += std::string(request.Header("authorization")) + request.body;
  return {.body = std::to_string(seen.size()) + '\n'};
}

// Limits low enough for inputs of a few kilobytes to meet them.
uint16_t ServerPort() {
  static const std::unique_ptr<HttpServer>& server = *[] {
    HttpServer::Options options;
    options.request_timeout = std::chrono::milliseconds(1000);
    options.max_header_bytes = 2048;
    options.max_body_bytes = 1024;
    options.log = [](const std::string& message) { Require(message.size() < 100'000, "log message"); };
    const auto reload = [](const ServerRequest& request) {
      return request.Header("authorization").empty() ? ServerResponse{.status = 401, .body = "Who are you?\n"}
                                                     : Describe(request);
    };
    auto started = HttpServer::Start(std::move(options), {{"GET", "/metrics", Describe},
                                                          {"GET", "/-/healthy", Describe},
                                                          {"GET", "/-/ready", Describe},
                                                          {"GET", "/", Describe},
                                                          {"POST", "/-/reload", reload}});
    Require(started.ok(), "server");
    return new std::unique_ptr<HttpServer>(std::move(started).value());
  }();
  return server->port();
}

// libFuzzer's alarm clock would interrupt a running call.
class AlarmsBlocked {
 public:
  AlarmsBlocked() {
    sigemptyset(&alarm_);
    sigaddset(&alarm_, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm_, nullptr);
  }
  ~AlarmsBlocked() { pthread_sigmask(SIG_UNBLOCK, &alarm_, nullptr); }
  AlarmsBlocked(const AlarmsBlocked&) = delete;
  AlarmsBlocked& operator=(const AlarmsBlocked&) = delete;

 private:
  sigset_t alarm_;
};

std::string Ask(std::string_view request) {
  const AlarmsBlocked blocked;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  Require(fd >= 0, "socket");
  const timeval patience{kPatienceSeconds, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  // A reset at the end, so that a minute's worth of connections does not wait for its packets to die out.
  const linger reset{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(ServerPort());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Require(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "connect");
  while (!request.empty()) {
    const ssize_t sent = send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    if (sent < 0) break;  // the server has heard enough
    request.remove_prefix(static_cast<size_t>(sent));
  }
  shutdown(fd, SHUT_WR);
  std::string answer;
  char buffer[4096];
  for (ssize_t got; (got = recv(fd, buffer, sizeof buffer, 0)) != 0;) {
    if (got < 0) {
      Require(errno == ECONNRESET, "the end of the answer");
      break;
    }
    answer.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  return answer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string answer = Ask({reinterpret_cast<const char*>(data), size});
  Require(answer.empty() || answer.starts_with("HTTP/1.1 "), "an answer that is not HTTP");
  static uint64_t inputs = 0;
  if (++inputs % kInputsBetweenChecks == 0) {
    Require(Ask("GET /-/healthy HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 200 "), "a good request");
  }
  return 0;
}
