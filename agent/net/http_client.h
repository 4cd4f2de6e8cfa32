// Sends HTTP requests over a connection that is kept for the next request. The adapter of libcurl.
//
// Thread safety: Send from one thread at a time; Interrupt and Rearm from any thread.
//
//   HttpClient client(HttpClient::Options{});
//   Result<HttpResponse> response = client.Send({.method = "PUT", .url = url, .headers = {}, .body = body});
//   if (!response.ok()) LogWarning("push", response.error());  // "127.0.0.1:9091: cannot connect: Connection refused"
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

#include "base/result.h"
#include "net/gateway_access.h"

namespace persia::agent {

struct HttpRequest {
  std::string method;
  std::string url{};  // http or https
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string_view body{};  // REQUIRES: valid until Send returns
  // A limit for the whole request, in addition to Options::total_timeout; 0: none.
  std::chrono::milliseconds timeout{0};
  // Sends no password, token or client certificate: for another peer than the one of Options::access.
  bool anonymous = false;
  // Sends the request again, with method and body, where a 301, 302, 307 or 308 says, up to five times: on the same host, and
  // never from https to http. Another port gets no secrets: neither what `anonymous` leaves out nor headers of
  // Options::secrets.
  bool follow_redirects = false;
  // Receives the response body in pieces, for one that may be too large to keep. Returning false ends the transfer; that is not
  // an error.
  std::function<bool(int status, std::string_view piece)> receive{};
};

struct HttpResponse {
  int status = 0;
  std::string body;  // at most Options::max_response_bytes; the rest is discarded
  // From Retry-After, in seconds or as a date.
  std::optional<std::chrono::seconds> retry_after{};
  // Where a redirect leads that was not followed: scheme, host and port. Empty: nowhere.
  std::string redirects_to{};
  // Whether it comes from another port, to which a redirect led, and which got no secrets.
  bool without_secrets = false;
  // Whether a new connection was opened.
  bool new_connection = false;
};

class HttpClient {
 public:
  struct Options {
    // For the name lookup and the connection.
    std::chrono::milliseconds connect_timeout{3000};
    // From the name lookup to the last byte of the response.
    std::chrono::milliseconds total_timeout{10000};
    // A gateway's error response names the offending series. A much longer response is not read to its end.
    size_t max_response_bytes = 64 * 1024;
    std::string user_agent = "persia-metrics-agent";
    // A URL. The proxy variables of the environment are meant for the job and are ignored.
    std::string proxy{};
    // Hosts, domains and networks that are reached without it, separated by commas.
    std::string no_proxy{};
    // Credentials and TLS. Changed files are read again before each request; a file that cannot be used fails the request.
    GatewayAccessOptions access{};
    // Further secrets in requests, for example the values of headers: an answer or error that contains one is shown without it.
    std::vector<std::string> secrets{};
  };

  explicit HttpClient(Options options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Any answer with a status is a response. An error names host and port, and the cause. Neither contains a secret of
  // Options::access, ::secrets or ::proxy, even if the peer returned it.
  Result<HttpResponse> Send(const HttpRequest& request);
  // Removes such secrets from text that HttpRequest::receive got.
  void Redact(std::string& text) const;

  // Whether the peer closed the connection of the last request without an answer, as a server does when its handler fails.
  [[nodiscard]] bool closed_without_answer() const;

  // The current request and all later ones fail immediately, until Rearm.
  void Interrupt();
  void Rearm();
  [[nodiscard]] bool interrupted() const;

 private:
  class Transfer;
  std::unique_ptr<Transfer> transfer_;
};

}  // namespace persia::agent
