#include "net/http_server.h"

#include <civetweb.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "lib/src/platform/signals_blocked.h"
#include "net/listener.h"

namespace persia::agent {
namespace {

using Settings = std::vector<std::pair<const char*, std::string>>;

constexpr size_t kWriteBytes = 1 << 13;
// For requests that are being answered when the server stops.
constexpr std::chrono::seconds kPatience(2);

// Certificate and key in one file, as civetweb needs them, in memory only.
class PemPair {
 public:
  explicit PemPair(const std::string& pem)
      : fd_(memfd_create("certificate and key", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    static_cast<void>(!write(fd_, pem.data(), pem.size()));
  }
  ~PemPair() { close(fd_); }
  PemPair(const PemPair&) = delete;
  PemPair& operator=(const PemPair&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const int fd_;
  const std::string path_;
};

void AddTls(const ListenerTls& tls, const std::string& pem, Settings& settings) {
  settings.emplace_back("ssl_certificate", pem);
  settings.emplace_back("ssl_protocol_version", tls.min_version == ListenerTls::Version::k13 ? "5" : "4");
  // The default would accept client certificates of every CA that the system trusts.
  settings.emplace_back("ssl_default_verify_paths", "no");
  if (tls.client_cert == ListenerTls::ClientCert::kIgnore) return;
  settings.emplace_back("ssl_verify_peer", tls.client_cert == ListenerTls::ClientCert::kRequire ? "yes" : "optional");
  settings.emplace_back("ssl_ca_file", tls.client_ca_file);
}

bool IsHeader(std::string_view key, std::string_view name) {
  return key.size() == name.size() && strncasecmp(key.data(), name.data(), name.size()) == 0;
}

}  // namespace

std::string_view ServerRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (IsHeader(key, name)) return value;
  return {};
}

std::string ServerRequest::HeaderList(std::string_view name) const {
  std::string list;
  for (const auto& [key, value] : headers)
    if (IsHeader(key, name)) list += (list.empty() ? "" : ", ") + value;
  return list;
}

class HttpServer::Civetweb {
 public:
  Civetweb(Options options, std::vector<Route> routes) : options_(std::move(options)), routes_(std::move(routes)) {}
  ~Civetweb() { Stop(); }
  Civetweb(const Civetweb&) = delete;
  Civetweb& operator=(const Civetweb&) = delete;

  // Returns the port; null if civetweb cannot start.
  std::optional<uint16_t> Start(const ListenAddress& address) {
    static std::once_flag once;
    std::call_once(once, [] { mg_init_library(MG_FEATURES_DEFAULT); });
    // `+` is for IPv4 and IPv6.
    const std::string where = address.ip == "::" ? '+' + std::to_string(address.port) : address.Text();
    Settings settings = {{"listening_ports", where + (options_.tls ? "s" : "")},
                         {"num_threads", std::to_string(options_.threads)},
                         {"request_timeout_ms", std::to_string(options_.request_timeout.count())},
                         {"max_request_size", std::to_string(options_.max_header_bytes)},
                         {"enable_keep_alive", "no"},
                         // Otherwise civetweb accepts absolute URIs of the host "mydomain.com" only.
                         {"enable_auth_domain_check", "no"}};
    std::optional<PemPair> pem;
    if (options_.tls) {
      const Result<std::string> text = ReadPem(*options_.tls);
      if (!text.ok()) {
        Log(text.error());
        return std::nullopt;
      }
      pem.emplace(text.value());
      AddTls(*options_.tls, pem->path(), settings);
    }
    std::vector<const char*> pointers;
    for (const auto& [name, value] : settings) pointers.insert(pointers.end(), {name, value.c_str()});
    pointers.push_back(nullptr);
    const mg_callbacks callbacks = Callbacks();
    const metrics::SignalsBlocked blocked;
    context_ = mg_start(&callbacks, this, pointers.data());
    if (context_ == nullptr) return std::nullopt;
    mg_server_port port{};
    mg_get_server_ports(context_, 1, &port);
    address_ = {address.ip, static_cast<uint16_t>(port.port)};
    return address_.port;
  }

  [[nodiscard]] std::string last_message() const {
    const MutexLock lock(mutex_);
    return last_message_;
  }

 private:
  static mg_callbacks Callbacks() {
    mg_callbacks callbacks{};
    callbacks.begin_request = [](mg_connection* connection) { return Self(connection)->Answer(connection); };
    callbacks.http_error = [](mg_connection* connection, int status, const char* message) {
      Self(connection)->Write(connection, {.status = status, .body = std::string(message) + '\n'}, true);
      mg_disable_connection_keep_alive(connection);
      return 0;
    };
    callbacks.init_connection = [](const mg_connection* connection, void** data) {
      *data = Self(connection);  // connection_close is also called for connections that were never initialized
      is_answered = false;
      return 0;
    };
    callbacks.connection_close = AnswerForeign;
    callbacks.log_message = [](const mg_connection* connection, const char* message) {
      Self(connection)->Log(message);
      return 1;
    };
    return callbacks;
  }

  // civetweb has no callback for a request whose target is `*` or the URI of another server, and closes the connection.
  static void AnswerForeign(const mg_connection* connection) {
    const mg_request_info* info = mg_get_request_info(connection);
    const bool is_foreign = info != nullptr && info->request_uri != nullptr && info->local_uri == nullptr;
    if (!is_foreign || std::exchange(is_answered, true) || mg_get_user_connection_data(connection) == nullptr) return;
    const ServerResponse response{.status = 400, .body = "The target is no path of this server.\n"};
    Self(connection)->Write(const_cast<mg_connection*>(connection), response, true);
  }

  static Civetweb* Self(const mg_connection* connection) {
    return static_cast<Civetweb*>(mg_get_user_data(mg_get_context(connection)));
  }

  void Stop() {
    if (context_ == nullptr) return;
    AwaitAnswers();
    // civetweb checks its stop flag every two seconds, and at each connection.
    std::jthread waker([this](const std::stop_token& stop) {
      NameThread("web stop");
      while (!stop.stop_requested()) {
        WakeListener(address_);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    });
    mg_stop(context_);
  }

  void AddToAnswered(int by) {
    const MutexLock lock(mutex_);
    being_answered_ += by;
    answered_.NotifyAll();
  }
  // civetweb writes nothing once it stops.
  void AwaitAnswers() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    const MutexLock lock(mutex_);
    while (being_answered_ > 0 && std::chrono::steady_clock::now() < deadline) answered_.WaitUntil(mutex_, deadline);
  }

  int Answer(mg_connection* connection) {
    const mg_request_info* info = mg_get_request_info(connection);
    ServerRequest request{.method = info->request_method,
                          .path = info->local_uri != nullptr ? info->local_uri : "",
                          .query = info->query_string != nullptr ? info->query_string : "",
                          .headers = {},
                          .body = {}};
    for (int i = 0; i < info->num_headers; ++i)
      request.headers.emplace_back(info->http_headers[i].name, info->http_headers[i].value);
    const bool is_head = request.method == "HEAD";
    std::optional<ServerResponse> refused;
    if (info->num_headers >= MG_MAX_HEADERS) {
      // civetweb drops those that follow, so that the guard would decide without them.
      refused = ServerResponse{.status = 431, .body = "The request has more than 63 headers.\n"};
    } else if (options_.guard) {
      refused = options_.guard(request);
    }
    if (!refused) refused = ReadBody(connection, info->content_length, request);
    AddToAnswered(1);
    const ServerResponse response = refused ? *std::move(refused) : Dispatch(request);
    Write(connection, response, !is_head);
    AddToAnswered(-1);
    // Otherwise civetweb would read the rest of the body, for as long as the client sends.
    mg_disable_connection_keep_alive(connection);
    return response.status;
  }

  ServerResponse Dispatch(const ServerRequest& request) const {
    std::string allowed;
    for (const Route& route : routes_) {
      if (route.path != request.path) continue;
      if (route.method == request.method || (route.method == "GET" && request.method == "HEAD")) return Call(route, request);
      allowed += (allowed.empty() ? "" : ", ") + route.method + (route.method == "GET" ? ", HEAD" : "");
    }
    if (allowed.empty()) return {.status = 404, .body = "Not found.\n"};
    return {.status = 405, .body = "Method not allowed; allowed: " + allowed + ".\n", .headers = {{"Allow", allowed}}};
  }

  ServerResponse Call(const Route& route, const ServerRequest& request) const {
    try {
      return route.handler(request);
    } catch (const std::exception& error) {
      Log(request.method + " " + route.path + ": " + error.what());
      return {.status = 500, .body = "The request failed; see the agent's log.\n"};
    }
  }

  // Returns the response if the body cannot be read.
  std::optional<ServerResponse> ReadBody(mg_connection* connection, long long length, ServerRequest& request) const {
    // civetweb would read the header of a chunk for as long as the client sends.
    if (!request.Header("Transfer-Encoding").empty())
      return ServerResponse{.status = 411, .body = "A body needs a Content-Length.\n"};
    if (length > 0 && static_cast<unsigned long long>(length) > options_.max_body_bytes)
      return ServerResponse{.status = 413, .body = "The body is too large.\n"};
    // One byte at a time: mg_read waits until it has all requested bytes, and its timeout restarts with each part.
    const auto deadline = std::chrono::steady_clock::now() + options_.request_timeout;
    for (long long left = length; left > 0; --left) {
      char byte = 0;
      if (mg_read(connection, &byte, 1) != 1 || std::chrono::steady_clock::now() > deadline)
        return ServerResponse{.status = 408, .body = "The body did not arrive in time.\n"};
      request.body += byte;
    }
    return std::nullopt;
  }

  void Write(mg_connection* connection, const ServerResponse& response, bool with_body) const {
    is_answered = true;
    const std::string& body = response.shared_body != nullptr ? *response.shared_body : response.body;
    std::string head = "HTTP/1.1 " + std::to_string(response.status) + ' ' +
                       mg_get_response_code_text(connection, response.status) + "\r\nContent-Type: " + response.content_type +
                       "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n";
    for (const auto& [name, value] : response.headers) head += name + ": " + value + "\r\n";
    head += "\r\n";
    if (mg_write(connection, head.data(), head.size()) <= 0 || !with_body) return;
    // civetweb's timeout restarts whenever the client receives something.
    const auto deadline = std::chrono::steady_clock::now() + options_.request_timeout +
                          std::chrono::milliseconds(body.size() * 1000 / options_.min_bytes_per_second);
    for (size_t at = 0; at < body.size() && std::chrono::steady_clock::now() < deadline; at += kWriteBytes) {
      const size_t size = std::min(kWriteBytes, body.size() - at);
      if (mg_write(connection, body.data() + at, size) != static_cast<int>(size)) return;
    }
  }

  void Log(const std::string& message) const {
    {
      const MutexLock lock(mutex_);
      last_message_ = message;
    }
    if (options_.log) options_.log(message);
  }

  // Whether the connection that this worker serves has an answer.
  static thread_local bool is_answered;

  const Options options_;
  const std::vector<Route> routes_;
  mg_context* context_ = nullptr;
  ListenAddress address_;
  mutable Mutex mutex_;
  mutable std::string last_message_ PERSIA_GUARDED_BY(mutex_);
  CondVar answered_;
  int being_answered_ PERSIA_GUARDED_BY(mutex_) = 0;  // requests
};

thread_local bool HttpServer::Civetweb::is_answered = false;

std::string HttpServer::WhyNoTls() {
  // Only the first call of mg_init_library in a process reports whether it loaded the TLS library. Before 1.16 civetweb knows
  // OpenSSL up to 1.1 and crashes at the first request with a newer one. Debian 13's 1.16 is built for 1.1 and does not load 3.
  static const bool loaded = (mg_init_library(MG_FEATURES_TLS) & MG_FEATURES_TLS) != 0;
  int major = 0;
  int minor = 0;
  const bool parsed = std::sscanf(mg_version(), "%d.%d", &major, &minor) == 2;
  if (loaded && parsed && std::pair(major, minor) >= std::pair(1, 16)) return "";
  return std::string("the web server library of this build, civetweb ") + mg_version() +
         ", cannot serve TLS with this system's OpenSSL; build the agent with the one of agent/net/build_civetweb, or leave "
         "listen_address on loopback and put a proxy with TLS before it";
}

Status HttpServer::CheckAddress(std::string_view address) {
  const Result<ListenAddress> parsed = ParseListenAddress(address);
  if (!parsed.ok()) return Error{parsed.error()};
  if (!parsed.value().IsIpv6() || mg_check_feature(MG_FEATURES_IPV6) != 0) return Done{};
  return Error{std::string("is an IPv6 address, which the web server library of this build, civetweb ") + mg_version() +
               ", cannot serve; give an IPv4 address, or build the agent with the one of agent/net/build_civetweb"};
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(Options options, std::vector<Route> routes) {
  const std::string text = options.listen_address;
  const bool may_fall_back = options.fall_back_to_free_port;
  if (Status status = CheckAddress(text); !status.ok()) return Error{"listen_address \"" + text + "\" " + status.error()};
  ListenAddress address = ParseListenAddress(text).value();

  std::unique_ptr<HttpServer> server(new HttpServer);
  server->civetweb_ = std::make_unique<Civetweb>(std::move(options), std::move(routes));
  std::optional<uint16_t> port = server->civetweb_->Start(address);
  if (!port && may_fall_back && BindError(address) == EADDRINUSE) {
    address.port = 0;
    port = server->civetweb_->Start(address);
    server->fell_back_ = port.has_value();
  }
  if (!port) {
    const int error = BindError(address);
    if (error == EADDRINUSE) {
      return Error{"listen_address \"" + text + "\": in use by " + HolderOf(address.port) +
                   "; give another port, or 0 for any free one"};
    }
    const std::string what = "listen_address \"" + text + "\": cannot listen";
    return error != 0 ? SystemError(what, error) : Error{what + ": " + server->civetweb_->last_message()};
  }
  server->port_ = *port;
  server->address_ = ListenAddress{address.ip, *port}.Text();
  return server;
}

HttpServer::~HttpServer() = default;

}  // namespace persia::agent
