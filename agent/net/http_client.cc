#include "net/http_client.h"

#include <curl/curl.h>
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <system_error>

#include "net/response_errors.h"
#include "net/url.h"

namespace persia::agent {
namespace {

// curl_easy_setopt is variadic: the type must be exactly `long`.
long Milliseconds(std::chrono::milliseconds time) { return static_cast<long>(time.count()); }

std::string Seconds(std::chrono::milliseconds time) {
  std::string text = std::to_string(static_cast<double>(time.count()) / 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + " s";
}

// "host:port" of a URL, for errors and the Host header: nothing else of it, which may hold secrets.
std::string HostOf(const std::string& text) {
  const auto url = Url::Parse(text);
  return url.ok() ? url.value().HostAndPort() : "";
}

constexpr int kMaxRedirects = 5;
constexpr size_t kMaxDiscarded = 1 << 20;
// libcurl keeps all headers, and limits neither trailers nor how many interim responses there are.
constexpr size_t kMaxHeaderBytes = 1 << 20;

}  // namespace

class HttpClient::Transfer {
 public:
  explicit Transfer(Options options) : options_(std::move(options)), access_(options_.access) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    for (const std::string& secret : options_.secrets) access_.Hide(secret);
    if (const auto proxy = ParseProxyUrl(options_.proxy); proxy.ok()) {
      proxy_address_ = proxy.value().HostAndPort();
      for (const std::string& secret : proxy.value().UserSecrets()) access_.Hide(secret);
    }
    multi_ = curl_multi_init();
    easy_ = curl_easy_init();
  }
  ~Transfer() {
    curl_easy_cleanup(easy_);
    curl_multi_cleanup(multi_);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  Result<HttpResponse> Send(HttpRequest request) {
    bool without_secrets = false;
    for (int followed = 0;; ++followed) {
      Result<HttpResponse> response = SendOnce(request);
      if (response.ok()) response.value().without_secrets = without_secrets;
      if (!response.ok() || !IsRedirect(response.value().status)) return response;
      const char* redirect = nullptr;
      curl_easy_getinfo(easy_, CURLINFO_REDIRECT_URL, &redirect);
      if (redirect == nullptr) return response;
      // A server name replaces the host of the URL, also in the redirect: then only the address that was set is asked.
      const bool may_follow = request.follow_redirects && followed < kMaxRedirects && options_.access.server_name.empty();
      std::string next = may_follow ? OnSameHost(request.url, redirect) : "";
      if (next.empty()) {
        std::string& origin = response.value().redirects_to = OriginOf(redirect);
        access_.Redact(origin);
        if (followed == kMaxRedirects) origin += " again";
        return response;
      }
      if (!IsSamePort(request.url, next)) {
        RemoveSecrets(request);
        without_secrets = true;
      }
      request.url = std::move(next);
    }
  }

  void Interrupt() {
    interrupted_ = true;
    curl_multi_wakeup(multi_);
  }
  void Rearm() { interrupted_ = false; }
  [[nodiscard]] bool interrupted() const { return interrupted_; }
  [[nodiscard]] bool closed_without_answer() const { return closed_without_answer_; }
  void Redact(std::string& text) const { access_.Redact(text); }

 private:
  // Another port may be another server's.
  void RemoveSecrets(HttpRequest& request) const {
    request.anonymous = true;
    std::erase_if(request.headers, [this](const auto& header) {
      return std::find(options_.secrets.begin(), options_.secrets.end(), header.second) != options_.secrets.end();
    });
  }

  Result<HttpResponse> SendOnce(const HttpRequest& request) {
    closed_without_answer_ = false;
    if (multi_ == nullptr || easy_ == nullptr) return Error{"libcurl cannot start: no memory"};
    response_ = {};
    receive_ = &request.receive;
    enough_ = false;
    discarded_ = 0;
    header_bytes_ = 0;
    error_[0] = '\0';
    timeout_ = options_.total_timeout;
    if (request.timeout.count() > 0) timeout_ = std::min(timeout_, request.timeout);
    Result<GatewayAccess::Credentials> access = access_.Read();
    if (!access.ok()) return Error{HostOf(request.url) + ": " + access.error()};
    if (request.anonymous)
      access = GatewayAccess::Credentials{.ca = access.value().ca, .cert = {}, .key = {}, .authorization = {}};
    curl_slist* headers = Headers(request, access.value());
    curl_slist* connect_to = nullptr;
    Prepare(request, headers);
    SetUpTls(request, access.value(), headers, connect_to);
    const CURLcode code = Run();
    closed_without_answer_ = code == CURLE_GOT_NOTHING;
    curl_slist_free_all(headers);
    curl_slist_free_all(connect_to);
    RedactBody();
    if (interrupted_) return Error{HostOf(request.url) + ": the request was interrupted"};
    // A status of 400 or more is an answer even if the body is cut off.
    const bool refused = code == CURLE_PARTIAL_FILE && StatusCode() >= 400;
    if (code != CURLE_OK && !enough_ && !refused) {
      std::string cause = Cause(code);
      access_.Redact(cause);
      // It may have a password.
      if (const size_t at = cause.find(options_.proxy); !options_.proxy.empty() && at != std::string::npos)
        cause.replace(at, options_.proxy.size(), "the proxy");
      return Error{HostOf(request.url) + ": " + cause};
    }
    response_.status = StatusCode();
    curl_off_t retry_after = 0;
    curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &retry_after);
    if (retry_after > 0) response_.retry_after = std::chrono::seconds(retry_after);
    long connections = 0;
    curl_easy_getinfo(easy_, CURLINFO_NUM_CONNECTS, &connections);
    response_.new_connection = connections > 0;
    return std::move(response_);
  }

  static curl_slist* Headers(const HttpRequest& request, const GatewayAccess::Credentials& access) {
    // Waiting for "100 Continue" would delay a large push by up to a second.
    curl_slist* headers = curl_slist_append(nullptr, "Expect:");
    for (const auto& [name, value] : request.headers) headers = curl_slist_append(headers, (name + ": " + value).c_str());
    if (!access.authorization.empty()) headers = curl_slist_append(headers, ("Authorization: " + access.authorization).c_str());
    return headers;
  }

  // libcurl gets the contents of certificates, not the names of their files. It compares them when it looks for a connection to
  // reuse, so that replaced files lead to a new connection.
  void SetUpTls(const HttpRequest& request, const GatewayAccess::Credentials& access, curl_slist*& headers,
                curl_slist*& connect_to) {
    const auto set_blob = [this](CURLoption option, const std::string& content) {
      if (content.empty()) return;
      // libcurl does not write to the blob. It copies it, since the blob would have to outlive the connection.
      curl_blob blob{const_cast<char*>(content.data()), content.size(), CURL_BLOB_COPY};
      Set(option, &blob);
    };
    set_blob(CURLOPT_CAINFO_BLOB, access.ca);
    set_blob(CURLOPT_SSLCERT_BLOB, access.cert);
    set_blob(CURLOPT_SSLKEY_BLOB, access.key);
    Set(CURLOPT_KEYPASSWD, "");  // otherwise a key with a passphrase would ask for it on the terminal
    SetUpVerification();
    const std::string& server_name = options_.access.server_name;
    if (server_name.empty()) return;
    // libcurl verifies, and sends as SNI, the host of the URL. So the URL gets the name in the certificate, CONNECT_TO the
    // address, and the header Host the original host.
    CURLU* url = curl_url();
    char* host = nullptr;
    char* port = nullptr;
    char* whole = nullptr;
    if (curl_url_set(url, CURLUPART_URL, request.url.c_str(), CURLU_PATH_AS_IS) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
        curl_url_set(url, CURLUPART_HOST, server_name.c_str(), 0) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_URL, &whole, 0) == CURLUE_OK) {
      Set(CURLOPT_URL, whole);
      connect_to = curl_slist_append(nullptr, ("::" + std::string(host) + ":" + port).c_str());
      Set(CURLOPT_CONNECT_TO, connect_to);
      headers = curl_slist_append(headers, ("Host: " + HostOf(request.url)).c_str());
      Set(CURLOPT_HTTPHEADER, headers);
    }
    curl_free(host);
    curl_free(port);
    curl_free(whole);
    curl_url_cleanup(url);
  }

  void SetUpVerification() {
    const GatewayAccessOptions& access = options_.access;
    if (access.insecure_skip_verify) {
      Set(CURLOPT_SSL_VERIFYPEER, 0L);
      Set(CURLOPT_SSL_VERIFYHOST, 0L);
    }
    // libcurl's constants of both ends, each in the order of TlsVersion.
    constexpr long kMin[] = {CURL_SSLVERSION_DEFAULT, CURL_SSLVERSION_TLSv1_0, CURL_SSLVERSION_TLSv1_1, CURL_SSLVERSION_TLSv1_2,
                             CURL_SSLVERSION_TLSv1_3};
    constexpr long kMax[] = {CURL_SSLVERSION_MAX_NONE, CURL_SSLVERSION_MAX_TLSv1_0, CURL_SSLVERSION_MAX_TLSv1_1,
                             CURL_SSLVERSION_MAX_TLSv1_2, CURL_SSLVERSION_MAX_TLSv1_3};
    Set(CURLOPT_SSLVERSION, kMin[static_cast<size_t>(access.min_version)] | kMax[static_cast<size_t>(access.max_version)]);
  }

  // The peer may return a secret, and a shortened body may end within one.
  void RedactBody() {
    std::string& body = response_.body;
    if (access_.has_secrets() && (enough_ || body.size() == options_.max_response_bytes)) {
      const size_t line_end = body.find_last_of(" \t\r\n\"");
      body.resize(line_end == std::string::npos ? 0 : line_end);
    }
    access_.Redact(body);
  }

  void Prepare(const HttpRequest& request, curl_slist* headers) {
    curl_easy_reset(easy_);  // keeps the connections: the multi handle owns them
    Set(CURLOPT_URL, request.url.c_str());
    Set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    if (request.method == "HEAD") Set(CURLOPT_NOBODY, 1L);
    if (!request.body.empty()) {
      Set(CURLOPT_POSTFIELDS, request.body.data());
      Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    }
    Set(CURLOPT_HTTPHEADER, headers);
    Set(CURLOPT_USERAGENT, options_.user_agent.c_str());
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_PATH_AS_IS, 1L);
    Set(CURLOPT_PROXY, options_.proxy.c_str());  // empty: libcurl ignores the environment
    const auto url = Url::Parse(request.url);
    Set(CURLOPT_NOPROXY, NoProxyForCurl(options_.no_proxy, url.ok() ? url.value().PortOrDefault() : uint16_t{0}).c_str());
    Set(CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(std::min(options_.connect_timeout, timeout_)));
    Set(CURLOPT_TIMEOUT_MS, Milliseconds(timeout_));
    Set(CURLOPT_TCP_KEEPALIVE, 1L);
    Set(CURLOPT_TCP_KEEPIDLE, 30L);
    Set(CURLOPT_TCP_KEEPINTVL, 10L);
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_QUICK_EXIT, 1L);  // a hanging name lookup must not outlast the timeout
    Set(CURLOPT_SOCKOPTFUNCTION, &CloseOnExec);
    Set(CURLOPT_HEADERFUNCTION, &CountHeader);
    Set(CURLOPT_HEADERDATA, this);
    Set(CURLOPT_WRITEFUNCTION, &KeepBody);
    Set(CURLOPT_WRITEDATA, this);
    Set(CURLOPT_ERRORBUFFER, static_cast<char*>(error_));
  }

  template <class T>
  void Set(CURLoption option, T value) {
    curl_easy_setopt(easy_, option, value);
  }

  CURLcode Run() {
    CURLcode code = CURLE_FAILED_INIT;
    if (curl_multi_add_handle(multi_, easy_) != CURLM_OK) return code;
    int running = 1;
    while (!interrupted_ && curl_multi_perform(multi_, &running) == CURLM_OK && running > 0) {
      // Returns for the socket, for libcurl's timers, and for Interrupt.
      curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
    }
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_, &left))
      if (message->msg == CURLMSG_DONE) code = message->data.result;
    curl_multi_remove_handle(multi_, easy_);
    return code;
  }

  int StatusCode() {
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }

  std::string Cause(CURLcode code) {
    curl_off_t connected = 0;
    if (header_bytes_ > kMaxHeaderBytes) return "the answer has more than 1 MiB of headers";
    switch (code) {
      case CURLE_COULDNT_RESOLVE_HOST:
        return "the name cannot be resolved; check the address and the name service";
      case CURLE_COULDNT_CONNECT:
        return (IsFromProxy() ? "cannot connect to the proxy " + proxy_address_ : "cannot connect") + ": " + ConnectError();
      case CURLE_COULDNT_RESOLVE_PROXY:
        return "the name of the proxy " + proxy_address_ + " cannot be resolved; check proxy_url and the name service";
      case CURLE_OPERATION_TIMEDOUT:
        curl_easy_getinfo(easy_, CURLINFO_PRETRANSFER_TIME_T, &connected);
        return connected > 0 ? "no whole answer within " + Seconds(timeout_)
                             : "no connection within " + Seconds(std::min(options_.connect_timeout, timeout_));
      case CURLE_GOT_NOTHING:
        return "the connection was closed without an answer";
      case CURLE_PARTIAL_FILE:
        return "the answer was cut off";
      case CURLE_SEND_ERROR:
      case CURLE_RECV_ERROR:
        return "the connection broke: " + TlsMessage(code);
      case CURLE_PEER_FAILED_VERIFICATION:
        return "the gateway's certificate is refused: " + Message(code) + "; check the CA file and the server name";
      case CURLE_SSL_CACERT_BADFILE:
        return (options_.access.ca.empty() ? "the CA file \"" + options_.access.ca_file + "\"" : "the setting ca") +
               " holds no certificate in PEM form";
      case CURLE_SSL_CERTPROBLEM:
        return "the client certificate \"" + options_.access.cert_file + "\" and its key \"" + options_.access.key_file +
               "\" cannot be used: " + Message(code);
      case CURLE_SSL_CONNECT_ERROR:
        return "no TLS connection: " + TlsMessage(code);
      case CURLE_UNSUPPORTED_PROTOCOL:
      case CURLE_WEIRD_SERVER_REPLY:
        return "the answer is not HTTP: " + Message(code);
      default:
        return Message(code);
    }
  }

  // libcurl resets the system's error at the beginning of a connection only: it is that of an earlier one after other errors.
  std::string ConnectError() {
    long os_error = 0;
    curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &os_error);
    return os_error != 0 ? std::generic_category().message(static_cast<int>(os_error)) : Message(CURLE_COULDNT_CONNECT);
  }

  // Whether libcurl's message is about the proxy: "Failed to connect to HOST port PORT ...". Some hosts are reached without it.
  [[nodiscard]] bool IsFromProxy() const {
    const auto proxy = ParseProxyUrl(options_.proxy);
    return !options_.proxy.empty() && proxy.ok() &&
           std::string_view(error_).find(" to " + proxy.value().host() + " port ") != std::string_view::npos;
  }

  // Adds the probable cause to OpenSSL's message.
  std::string TlsMessage(CURLcode code) {
    const std::string message = Message(code);
    if (message.find("certificate required") != std::string::npos || message.find("handshake failure") != std::string::npos)
      return message + "; the gateway may want a client certificate";
    if (message.find("unknown ca") != std::string::npos || message.find("bad certificate") != std::string::npos)
      return message + "; the gateway does not trust our client certificate";
    if (message.find("wrong version number") != std::string::npos)
      return message + "; it may be a gateway without TLS (http://)";
    return message;
  }

  std::string Message(CURLcode code) { return error_[0] != '\0' ? error_ : curl_easy_strerror(code); }

  static size_t CountHeader(char* /*data*/, size_t /*always 1*/, size_t size, void* self) {
    auto* transfer = static_cast<Transfer*>(self);
    transfer->header_bytes_ += size;
    return transfer->header_bytes_ > kMaxHeaderBytes ? 0 : size;  // another count than `size` ends the transfer
  }

  static size_t KeepBody(char* data, size_t /*always 1*/, size_t size, void* self) {
    auto* transfer = static_cast<Transfer*>(self);
    std::string& body = transfer->response_.body;
    const size_t kept = std::min(size, transfer->options_.max_response_bytes - body.size());
    body.append(data, kept);
    transfer->discarded_ += size - kept;
    // Up to kMaxDiscarded, reading on costs less than another connection.
    const auto& receive = *transfer->receive_;
    transfer->enough_ = receive ? !receive(transfer->StatusCode(), {data, size}) : transfer->discarded_ > kMaxDiscarded;
    return transfer->enough_ ? 0 : size;  // another count than `size` ends the transfer
  }

  // The job's command must not inherit the connection.
  static int CloseOnExec(void* /*unused*/, curl_socket_t socket, curlsocktype /*purpose*/) {
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    return CURL_SOCKOPT_OK;
  }

  const Options options_;
  GatewayAccess access_;
  std::atomic<bool> interrupted_{false};
  bool closed_without_answer_ = false;
  CURLM* multi_ = nullptr;
  CURL* easy_ = nullptr;
  std::chrono::milliseconds timeout_{0};
  HttpResponse response_;
  const std::function<bool(int, std::string_view)>* receive_ = nullptr;  // of the current request
  bool enough_ = false;                                                  // the rest of the answer is not needed
  size_t discarded_ = 0;                                                 // bytes of the body
  size_t header_bytes_ = 0;                                              // with trailers
  std::string proxy_address_;                                            // host and port; empty: no proxy
  char error_[CURL_ERROR_SIZE] = {};
};

HttpClient::HttpClient(Options options) : transfer_(std::make_unique<Transfer>(std::move(options))) {}
HttpClient::~HttpClient() = default;

Result<HttpResponse> HttpClient::Send(const HttpRequest& request) { return transfer_->Send(request); }
void HttpClient::Redact(std::string& text) const { transfer_->Redact(text); }
void HttpClient::Interrupt() { transfer_->Interrupt(); }
void HttpClient::Rearm() { transfer_->Rearm(); }
bool HttpClient::closed_without_answer() const { return transfer_->closed_without_answer(); }
bool HttpClient::interrupted() const { return transfer_->interrupted(); }

}  // namespace persia::agent
