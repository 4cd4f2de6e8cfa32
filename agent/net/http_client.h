// Sends HTTP requests and keeps the connection for the next one. The adapter of libcurl.
//
// Thread safety: Send from one thread at a time; Interrupt and Rearm from any thread.
//
//   HttpClient client(HttpClient::Options{});
//   Result<HttpResponse> response = client.Send({.method = "PUT", .url = url, .headers = {}, .body = body});
//   if (!response.ok()) log->warn(response.error());  // "127.0.0.1:9091: connection refused"
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/result.h"
#include "net/gateway_access.h"

namespace persia::agent {

struct HttpRequest {
  std::string method;
  std::string url{};  // http or https
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string_view body{};  // REQUIRES: stays until Send returns
  // Of the whole request; 0 is Options::total_timeout. The smaller of both holds.
  std::chrono::milliseconds timeout{0};
  // Without our password, token and certificate: they are meant for one peer.
  bool anonymous = false;
  // Is given the answer's body piece by piece as it comes, for one that may be too large to keep; false: that was enough, and
  // the rest is not waited for.
  std::function<bool(int status, std::string_view piece)> receive{};
};

struct HttpResponse {
  int status = 0;
  std::string body;  // at most Options::max_response_bytes of it, the rest is read and dropped
  // How long the peer asks to be left alone, whether it gave seconds or a date.
  std::optional<std::chrono::seconds> retry_after{};
  // Whether a connection was opened for it.
  bool new_connection = false;
};

class HttpClient {
 public:
  struct Options {
    // To look up the name and connect.
    std::chrono::milliseconds connect_timeout{3000};
    // From the first look-up to the last byte of the answer.
    std::chrono::milliseconds total_timeout{10000};
    // How much of an answer is kept: a gateway's error names the offending series in it.
    size_t max_response_bytes = 64 * 1024;
    std::string user_agent = "persia-metrics-agent";
    // A proxy's URL. The proxy variables of the environment are meant for the job and are not used.
    std::string proxy{};
    // Credentials and TLS. Their files are looked at before each request; one that cannot be used is that request's error.
    GatewayAccessOptions access{};
  };

  explicit HttpClient(Options options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Any answer with a status is a response; an error names host and port and says why none came. Neither holds a secret of
  // Options::access, also not one that the peer sent back.
  Result<HttpResponse> Send(const HttpRequest& request);
  // Takes such a secret out of what a request's `receive` was given.
  void Redact(std::string& text) const;

  // Whether the peer took the last request and then closed the connection without an answer, as a server does whose handler
  // fails.
  [[nodiscard]] bool closed_without_answer() const;

  // The request under way, and each later one, ends at once with an error, until Rearm.
  void Interrupt();
  void Rearm();
  [[nodiscard]] bool interrupted() const;

 private:
  class Transfer;
  std::unique_ptr<Transfer> transfer_;
};

}  // namespace persia::agent
