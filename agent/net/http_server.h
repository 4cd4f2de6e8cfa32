// Serves the agent's pages: /metrics, /-/healthy, /. The adapter of civetweb.
//
// Every request holds a worker thread until it is answered, and a client that stalls holds one until the request's time is up,
// or until others find no worker: then it is cut off (stalled_clients.h). The number of workers is bounded, and so is what
// clients can take. Connections are not kept after the answer, since an idle one would hold a worker as well, and what is left
// of a body that was refused is not read.
//
// Thread safety: handlers are called from several worker threads at once, on stacks of 100 KiB. The server itself: made, asked
// and destroyed by one thread. The destructor returns once no handler is running any more; requests under way are cut off
// within two seconds.
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

#include "model/result.h"

namespace persia::agent {

struct ServerRequest {
  std::string method;
  std::string path;   // decoded, without the query
  std::string query;  // as sent, without the '?'
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  // The first header of this name, in any case; empty if there is none.
  [[nodiscard]] std::string_view Header(std::string_view name) const;
};

struct ServerResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  // Instead of `body`, if not null: a text that others have too.
  std::shared_ptr<const std::string> shared_body{};
};

// What answers one method on one exact path. A route for GET answers HEAD too. A path without a route gives 404, another
// method on a known path 405, a handler that throws 500.
struct Route {
  std::string method;
  std::string path;
  std::function<ServerResponse(const ServerRequest&)> handler;
};

// TLS for the listener. Its files are read at the start.
struct ListenerTls {
  enum class ClientCert { kIgnore, kVerifyIfGiven, kRequire };
  enum class Version { k12, k13 };

  std::string cert_file{};  // PEM, with its chain
  std::string key_file{};   // PEM, without a passphrase
  // PEM: whose certificates clients may show.
  std::string client_ca_file{};
  ClientCert client_cert = ClientCert::kIgnore;
  Version least = Version::k12;

  bool operator==(const ListenerTls&) const = default;
};

class HttpServer {
 public:
  struct Options {
    // "IPv4:port", "localhost:port", or ":port" for all IPv4 addresses. Port 0 takes a free one. IPv6 is refused: civetweb
    // here is built without it.
    std::string listen_address = "127.0.0.1:0";
    // If another process has the port: take a free one of the same address, which port() tells.
    bool fall_back_to_free_port = false;
    // So many clients may be slow, or stall, at once. An idle one costs 17 KiB of memory (measured: 64 of them 1080 KiB, 4 of
    // them 92), one at work its buffer of `max_header_bytes` as well.
    int threads = 64;
    // For the header, then for the body (408), then for the answer, which may take a second more for each MiB. A client that
    // sends nothing more is seen within twice that.
    std::chrono::milliseconds request_timeout{5000};
    // Request line and headers together; above, 400.
    size_t max_header_bytes = 16 * 1024;
    // Above, 413. One without Content-Length is refused: 411.
    size_t max_body_bytes = 64 * 1024;
    // Asked before each request's body is read, whatever its path: an answer of this one is the answer.
    std::function<std::optional<ServerResponse>(const ServerRequest&)> guard{};
    // REQUIRES: WhyNoTls() is empty.
    std::optional<ListenerTls> tls{};
    // Called from any thread with what civetweb has to say.
    std::function<void(const std::string& message)> log{};
    // Called from any thread when clients had to be cut off.
    std::function<void(const std::string& message)> warn{};
  };

  // Why the civetweb at hand cannot do TLS, and what to do instead; empty: it can. Any thread.
  static std::string WhyNoTls();

  // An error quotes the address and says whether it is in use, not ours to bind, or not understood.
  static Result<std::unique_ptr<HttpServer>> Start(Options options, std::vector<Route> routes);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "127.0.0.1:34567", with the port that was taken.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] uint16_t port() const { return port_; }
  // Whether the port is another one than asked for.
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
