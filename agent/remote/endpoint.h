// A database's address for remote write, how it is treated, and the requests to it.
//
// Thread safety: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/http_client.h"

namespace persia::agent {

struct Endpoint {
  std::string name;  // of the target, in logs and as a label
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers{};  // besides those of the protocol
  HttpClient::Options http{};
  bool follow_redirects = true;
  // After a failed request, the wait doubles from `min_backoff` to `max_backoff` until one is accepted; each is drawn from its
  // upper half.
  std::chrono::milliseconds min_backoff{100};
  std::chrono::milliseconds max_backoff{5000};
  // Of the metadata of families; 0: none are sent.
  std::chrono::milliseconds metadata_interval{0};
  uint32_t max_metadata = 2000;  // families of a request
};

// For each client of the endpoint. Its answers and errors are free of all that may be secret: headers, and the URL's query.
HttpClient::Options ClientOptions(const Endpoint& endpoint);

// `body`: a message of the protocol, compressed. REQUIRES: it is valid until the request is sent.
HttpRequest WriteRequestTo(const Endpoint& endpoint, std::string_view body);

// Why the database has not accepted a request: "status 500: overloaded".
std::string RefusalOf(const Result<HttpResponse>& response);

}  // namespace persia::agent
