#include "remote/endpoint.h"

#include <utility>

#include "net/response_errors.h"
#include "net/url.h"

namespace persia::agent {
namespace {

constexpr size_t kMaxQuotedBytes = 500;
constexpr char kSetUrl[] = "; set the url to where it accepts samples";

}  // namespace

HttpClient::Options ClientOptions(const Endpoint& endpoint) {
  HttpClient::Options options = endpoint.http;
  for (const auto& [name, value] : endpoint.headers) options.secrets.push_back(value);
  const auto url = Url::Parse(endpoint.url);
  if (!url.ok()) return options;
  for (std::string& secret : url.value().QuerySecrets()) options.secrets.push_back(std::move(secret));
  return options;
}

HttpRequest WriteRequestTo(const Endpoint& endpoint, std::string_view body) {
  HttpRequest request{.method = "POST", .url = endpoint.url, .headers = endpoint.headers, .body = body};
  request.headers.emplace_back("Content-Type", "application/x-protobuf");
  request.headers.emplace_back("Content-Encoding", "snappy");
  request.headers.emplace_back("X-Prometheus-Remote-Write-Version", "0.1.0");
  request.follow_redirects = endpoint.follow_redirects;
  return request;
}

std::string RefusalOf(const Result<HttpResponse>& response) {
  if (!response.ok()) return response.error();
  const HttpResponse& answer = response.value();
  const std::string status = "status " + std::to_string(answer.status) + ": ";
  if (!answer.redirects_to.empty())
    return status + "it redirects to " + answer.redirects_to + ", which is not followed" + kSetUrl;
  const std::string body = BodyExcerpt(answer.body, kMaxQuotedBytes);
  if ((answer.status == 401 || answer.status == 403) && answer.without_secrets) {
    return status + body + (body.empty() ? "" : "; ") + "it redirects to another port, which gets no credentials and headers" +
           kSetUrl;
  }
  if (!IsRedirect(answer.status)) return status + body;
  return status + body + (body.empty() ? "" : "; ") + "it redirects, but its Location is missing or not a URL" + kSetUrl;
}

}  // namespace persia::agent
