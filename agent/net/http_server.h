// Serves the agent's pages: /metrics, /-/healthy, /. The adapter of civetweb.
//
// Every request holds one of a few worker threads until it is answered; others wait. A client that stalls holds one until the
// request times out. Connections are closed after the response, since an idle one would hold a worker too. The rest of a
// refused body is not read.
//
// Thread safety: several worker threads may call handlers concurrently, on stacks of 100 KiB. Create, query and destroy the
// server in one thread. The destructor waits two seconds for requests that are being answered, and returns when no handler is
// running; it closes the connections of unfinished requests within two seconds.
//
//   Result<std::unique_ptr<HttpServer>> server = HttpServer::Start(
//       {.listen_address = "127.0.0.1:9464"},
//       {{"GET", "/metrics", [](const ServerRequest&) { return ServerResponse{.body = "..."}; }}});
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/listener.h"

namespace persia::agent {

// Of requests that may wait, several are left free for others. A browser asks two things at a time here (web/assets/api.js).
inline constexpr int kWebWorkers = 6;

struct ServerRequest {
  std::string method;
  std::string path;   // decoded, without the query
  std::string query;  // as sent, without the '?'
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  // The first header of this name, ignoring case; empty if there is none.
  [[nodiscard]] std::string_view Header(std::string_view name) const;
  // All headers of this name as one, with commas between them: for headers that are lists (RFC 9110, section 5.3).
  [[nodiscard]] std::string HeaderList(std::string_view name) const;
};

struct ServerResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  // Sent instead of `body` if not null.
  std::shared_ptr<const std::string> shared_body{};
};

// Handles one method on one exact path. A route for GET handles HEAD too. An unknown path gives 404, another method on a known
// path 405, a handler that throws 500.
struct Route {
  std::string method;
  std::string path;
  std::function<ServerResponse(const ServerRequest&)> handler;
};

class HttpServer {
 public:
  struct Options {
    // See ParseListenAddress. Port 0 takes a free port. IPv6 is refused if this build's civetweb has none; see CheckAddress.
    std::string listen_address = "127.0.0.1:0";
    // If another process uses the port, take a free one of the same address. See port().
    bool fall_back_to_free_port = false;
    // Worker threads. An idle one costs 24 KiB of memory, a busy one also a buffer of `max_header_bytes`.
    int threads = kWebWorkers;
    // For the header, for the body (408), and for the response, which may also take the time of this rate. A client that stops
    // sending is noticed within twice this time.
    std::chrono::milliseconds request_timeout{5000};
    size_t min_bytes_per_second = 1 << 20;
    // Request line and headers; larger ones give 400. More than 63 headers give 431.
    size_t max_header_bytes = 16 * 1024;
    // A larger body gives 413, one without Content-Length 411.
    size_t max_body_bytes = 64 * 1024;
    // Called before each request's body is read, on every path. If it returns a response, that is the response.
    std::function<std::optional<ServerResponse>(const ServerRequest&)> guard{};
    // The files are read by Start. REQUIRES: WhyNoTls() is empty.
    std::optional<ListenerTls> tls{};
    // Called from any thread with civetweb's messages.
    std::function<void(const std::string& message)> log{};
  };

  // An error says why no server of this build can listen at `address`, without quoting it. Whether the address and the port are
  // free is not checked. Any thread.
  static Status CheckAddress(std::string_view address);

  // Why this build cannot serve TLS, and what to do instead; empty if it can. Any thread.
  static std::string WhyNoTls();

  // An error quotes the address and says why the server cannot listen there.
  static Result<std::unique_ptr<HttpServer>> Start(Options options, std::vector<Route> routes);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "127.0.0.1:34567", with the actual port.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] uint16_t port() const { return port_; }
  // Whether fall_back_to_free_port took another port.
  [[nodiscard]] bool fell_back() const { return fell_back_; }

 private:
  class Civetweb;
  HttpServer() = default;

  std::unique_ptr<Civetweb> civetweb_;
  std::string address_;
  uint16_t port_ = 0;
  bool fell_back_ = false;
};

}  // namespace persia::agent
