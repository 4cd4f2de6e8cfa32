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
#include <system_error>
#include <thread>

#include "lib/src/signals_blocked.h"
#include "net/listen_address.h"
#include "net/stalled_clients.h"
#include "net/watched_file.h"

namespace persia::agent {
namespace {

using Stage = StalledClients::Stage;

// An answer is written in pieces, and given up when its client is slower than kSlowestReader beyond the time-out.
constexpr size_t kPiece = 1 << 16;

// Certificate and key in one file, as civetweb wants them, which is in memory alone and gone when civetweb has read it.
class PemPair {
 public:
  PemPair(const std::string& cert_file, const std::string& key_file)
      : fd_(memfd_create("certificate and key", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    for (const std::string& file : {cert_file, key_file}) {
      // What cannot be read is missing, and civetweb says so.
      const Result<std::string> read = WatchedFile("PEM file", file).Read();
      const std::string text = (read.ok() ? read.value() : "") + '\n';
      static_cast<void>(!write(fd_, text.data(), text.size()));
    }
  }
  ~PemPair() { close(fd_); }
  PemPair(const PemPair&) = delete;
  PemPair& operator=(const PemPair&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const int fd_;
  const std::string path_;
};

// The settings point into `tls` and `pem`.
void AddTls(const ListenerTls& tls, const std::string& pem, std::vector<const char*>& settings) {
  const auto add = [&](const char* name, const char* value) { settings.insert(settings.end(), {name, value}); };
  add("ssl_certificate", pem.c_str());
  add("ssl_protocol_version", tls.least == ListenerTls::Version::k13 ? "5" : "4");
  // Else whoever the system trusts would be a good client.
  add("ssl_default_verify_paths", "no");
  if (tls.client_cert == ListenerTls::ClientCert::kIgnore) return;
  add("ssl_verify_peer", tls.client_cert == ListenerTls::ClientCert::kRequire ? "yes" : "optional");
  add("ssl_ca_file", tls.client_ca_file.c_str());
}

}  // namespace

std::string_view ServerRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key.size() == name.size() && strncasecmp(key.data(), name.data(), name.size()) == 0) return value;
  }
  return {};
}

// What civetweb's callbacks work on.
class HttpServer::Civetweb {
 public:
  Civetweb(Options options, std::vector<Route> routes) : options_(std::move(options)), routes_(std::move(routes)) {}
  ~Civetweb() { Stop(); }
  Civetweb(const Civetweb&) = delete;
  Civetweb& operator=(const Civetweb&) = delete;

  // Gives the port, or none if civetweb could not start.
  std::optional<uint16_t> Start(const ListenAddress& address) {
    static std::once_flag once;
    std::call_once(once, [] { mg_init_library(MG_FEATURES_DEFAULT); });
    const std::string ports = address.Text() + (options_.tls ? "s" : "");
    const std::string threads = std::to_string(options_.threads);
    const std::string timeout = std::to_string(options_.request_timeout.count());
    const std::string header_bytes = std::to_string(options_.max_header_bytes);
    std::vector<const char*> settings = {"listening_ports",
                                         ports.c_str(),  //
                                         "num_threads",
                                         threads.c_str(),  //
                                         "request_timeout_ms",
                                         timeout.c_str(),  //
                                         "max_request_size",
                                         header_bytes.c_str(),  //
                                         "enable_keep_alive",
                                         "no",  //
                                         // Else a request with an absolute URI is one for a host "mydomain.com" only.
                                         "enable_auth_domain_check", "no"};
    std::optional<PemPair> pem;
    if (options_.tls) {
      pem.emplace(options_.tls->cert_file, options_.tls->key_file);
      AddTls(*options_.tls, pem->path(), settings);
    }
    settings.push_back(nullptr);
    mg_callbacks callbacks{};
    callbacks.begin_request = [](mg_connection* connection) { return Self(connection)->Answer(connection); };
    callbacks.http_error = [](mg_connection* connection, int status, const char* message) {
      Self(connection)->Write(connection, {.status = status, .body = std::string(message) + '\n'}, true);
      mg_disable_connection_keep_alive(connection);
      return 0;
    };
    callbacks.init_connection = [](const mg_connection* connection, void** mark) {
      *mark = Self(connection);  // so that its end is told from that of a connection which never came so far
      Self(connection)->stalled_clients_.WorkerTaken();
      return 0;
    };
    // Only between these two a socket is closed.
    callbacks.connection_close = [](const mg_connection* connection) {
      StalledClients& clients = Self(connection)->stalled_clients_;
      if (mg_get_user_connection_data(connection) != nullptr) clients.WorkerFree();
      if (const auto peer = PeerOf(connection)) clients.Note(*peer, Stage::kClosing);
    };
    callbacks.connection_closed = [](const mg_connection* connection) {
      if (const auto peer = PeerOf(connection)) Self(connection)->stalled_clients_.Forget(*peer);
    };
    callbacks.log_message = [](const mg_connection* connection, const char* message) {
      Self(connection)->Log(message);
      return 1;
    };
    {
      const metrics::SignalsBlocked blocked;
      context_ = mg_start(&callbacks, this, settings.data());
    }
    if (context_ == nullptr) return std::nullopt;
    mg_server_port port{};
    mg_get_server_ports(context_, 1, &port);
    address_ = {address.ip, static_cast<uint16_t>(port.port)};
    {
      const metrics::SignalsBlocked blocked;
      stalled_clients_.Watch(address_.port);
    }
    return address_.port;
  }

  [[nodiscard]] std::string last_message() const { return last_message_; }

 private:
  static Civetweb* Self(const mg_connection* connection) {
    return static_cast<Civetweb*>(mg_get_user_data(mg_get_context(connection)));
  }

  static std::optional<StalledClients::Peer> PeerOf(const mg_connection* connection) {
    const mg_request_info* info = mg_get_request_info(connection);
    if (info == nullptr) return std::nullopt;
    return StalledClients::PeerOf(info->remote_addr, static_cast<uint16_t>(info->remote_port));
  }

  void Stop() {
    if (context_ == nullptr) return;
    stalled_clients_.Stop();
    // civetweb looks at its stop flag when a connection comes, else every two seconds.
    std::jthread knocker([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        Knock(address_);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    });
    mg_stop(context_);
  }

  int Answer(mg_connection* connection) {
    const mg_request_info* info = mg_get_request_info(connection);
    ServerRequest request{.method = info->request_method,
                          .path = info->local_uri != nullptr ? info->local_uri : "",
                          .query = info->query_string != nullptr ? info->query_string : "",
                          .headers = {},
                          .body = {}};
    for (int i = 0; i < info->num_headers; ++i) {
      request.headers.emplace_back(info->http_headers[i].name, info->http_headers[i].value);
    }
    const bool is_head = request.method == "HEAD";
    const auto note = [this, peer = *PeerOf(connection)](Stage stage) { stalled_clients_.Note(peer, stage); };
    note(Stage::kWorking);
    std::optional<ServerResponse> refused = options_.guard ? options_.guard(request) : std::nullopt;
    if (!refused) {
      note(Stage::kReading);
      refused = ReadBody(connection, info->content_length, request);
      note(Stage::kWorking);
    }
    const ServerResponse response = refused ? *std::move(refused) : Dispatch(request);
    note(Stage::kWriting);
    Write(connection, response, !is_head);
    // Else civetweb would read what is left of the body before it closes, for as long as the client sends some.
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
    if (allowed.empty()) return {.status = 404, .body = "There is nothing at this address.\n"};
    return {.status = 405, .body = "Allowed here: " + allowed + ".\n", .headers = {{"Allow", allowed}}};
  }

  ServerResponse Call(const Route& route, const ServerRequest& request) const {
    try {
      return route.handler(request);
    } catch (const std::exception& error) {
      Log(request.method + " " + route.path + ": " + error.what());
      return {.status = 500, .body = "The request failed; the agent's log says why.\n"};
    }
  }

  // What is to be answered if the body cannot be had.
  std::optional<ServerResponse> ReadBody(mg_connection* connection, long long length, ServerRequest& request) const {
    // Chunks are civetweb's to read, and it reads a chunk's head for as long as somebody sends it.
    if (!request.Header("Transfer-Encoding").empty()) {
      return ServerResponse{.status = 411, .body = "A body needs a Content-Length here.\n"};
    }
    if (length > 0 && static_cast<unsigned long long>(length) > options_.max_body_bytes) {
      return ServerResponse{.status = 413, .body = "The body is too large.\n"};
    }
    // Byte for byte, since civetweb reads until all of what is asked for has come, with a time-out for each part of it.
    const auto deadline = std::chrono::steady_clock::now() + options_.request_timeout;
    for (long long left = length; left > 0; --left) {
      char byte = 0;
      if (mg_read(connection, &byte, 1) != 1 || std::chrono::steady_clock::now() > deadline) {
        return ServerResponse{.status = 408, .body = "The body did not come whole in time.\n"};
      }
      request.body += byte;
    }
    return std::nullopt;
  }

  void Write(mg_connection* connection, const ServerResponse& response, bool with_body) const {
    const std::string& body = response.shared_body != nullptr ? *response.shared_body : response.body;
    std::string head = "HTTP/1.1 " + std::to_string(response.status) + ' ' +
                       mg_get_response_code_text(connection, response.status) + "\r\nContent-Type: " + response.content_type +
                       "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n";
    for (const auto& [name, value] : response.headers) head += name + ": " + value + "\r\n";
    head += "\r\n";
    if (mg_write(connection, head.data(), head.size()) <= 0 || !with_body) return;
    // civetweb's time-out begins anew whenever something is taken.
    const auto deadline = std::chrono::steady_clock::now() + options_.request_timeout +
                          std::chrono::milliseconds(body.size() * 1000 / kSlowestReader);
    for (size_t at = 0; at < body.size() && std::chrono::steady_clock::now() < deadline; at += kPiece) {
      const size_t size = std::min(kPiece, body.size() - at);
      if (mg_write(connection, body.data() + at, size) != static_cast<int>(size)) return;
    }
  }

  void Log(const std::string& message) const {
    {
      const std::lock_guard lock(mutex_);
      last_message_ = message;
    }
    if (options_.log) options_.log(message);
  }

  const Options options_;
  const std::vector<Route> routes_;
  mg_context* context_ = nullptr;
  ListenAddress address_;
  StalledClients stalled_clients_{{.workers = static_cast<size_t>(options_.threads),
                                   .looks_always = options_.tls.has_value(),
                                   .on_cut = [this](size_t clients) {
                                     if (options_.warn) {
                                       options_.warn("cut off " + std::to_string(clients) +
                                                     " clients that stalled, to make room for others: as many as " +
                                                     std::to_string(options_.threads) + " were connected to the pages");
                                     }
                                   }}};
  mutable std::mutex mutex_;
  mutable std::string last_message_;
};

std::string HttpServer::WhyNoTls() {
  // The first call of a process tells whether the TLS library could be loaded; later ones say that it could, whatever happened.
  // Before 1.16 civetweb knows OpenSSL up to 1.1 only, and with a newer one it crashes at the first request.
  static const bool loaded = (mg_init_library(MG_FEATURES_TLS) & MG_FEATURES_TLS) != 0;
  int major = 0;
  int minor = 0;
  const bool known = std::sscanf(mg_version(), "%d.%d", &major, &minor) == 2;
  if (loaded && known && std::pair(major, minor) >= std::pair(1, 16)) return "";
  return std::string("the web server library of this build, civetweb ") + mg_version() +
         ", cannot serve TLS with this system's OpenSSL (it would crash at the first request); leave listen_address on "
         "loopback "
         "and put a proxy with TLS before it, or build with civetweb 1.16 or newer";
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(Options options, std::vector<Route> routes) {
  const std::string text = options.listen_address;
  const bool may_fall_back = options.fall_back_to_free_port;
  Result<ListenAddress> parsed = ParseListenAddress(text);
  if (!parsed.ok()) return Error{parsed.error()};
  ListenAddress address = parsed.value();

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
    if (error == EADDRINUSE) return Error{"listen address \"" + text + "\": in use by another process; choose another port"};
    return Error{"listen address \"" + text + "\": cannot listen: " +
                 (error != 0 ? std::generic_category().message(error) : server->civetweb_->last_message())};
  }
  server->port_ = *port;
  server->address_ = address.ip + ':' + std::to_string(*port);
  return server;
}

HttpServer::~HttpServer() = default;

}  // namespace persia::agent
