// Who may read the pages.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "config/web_config.h"
#include "files/small_file.h"
#include "net/http_server.h"
#include "net/password_check.h"

namespace persia::agent {

// Authenticates requests by the users of `web_config_file`, and reads the file again when it changes.
//
//   WebAccess access("/etc/persia/web.yaml");
//   Status opened = access.Open();
//   std::optional<ServerResponse> refusal = access.Refuse(request);   // none: allowed
//
// A changed file that is invalid, or that has no users where there were some, is not applied, and logged once. TLS settings are
// those of startup. Thread safety: Refuse and IsProtected: any thread; Open, before it: one thread.
class WebAccess {
 public:
  explicit WebAccess(std::string path) : file_("web_config_file", std::move(path)) {}

  Status Open();
  [[nodiscard]] const std::optional<ListenerTls>& tls() const { return tls_; }
  std::optional<ServerResponse> Refuse(const ServerRequest& request);
  // Whether a client needs the server's certificate or a password, as of the last Refuse.
  [[nodiscard]] bool IsProtected();

 private:
  using Users = std::map<std::string, std::string>;

  std::shared_ptr<PasswordCheck> Current();
  void SetUsers(const Users& users) PERSIA_REQUIRES(mutex_);
  std::string Apply(const std::string& text) PERSIA_REQUIRES(mutex_);

  std::optional<ListenerTls> tls_;
  StateLog log_{"web.config"};

  Mutex mutex_;
  WatchedFile file_ PERSIA_GUARDED_BY(mutex_);
  std::string text_ PERSIA_GUARDED_BY(mutex_);   // of the file when it was last read, valid or not
  std::string error_ PERSIA_GUARDED_BY(mutex_);  // of that text
  Users users_ PERSIA_GUARDED_BY(mutex_);
  std::shared_ptr<PasswordCheck> check_ PERSIA_GUARDED_BY(mutex_);  // null: no users, everyone is allowed
};

// Refuses requests that a page of another site makes a browser send to the agent.
//
//   HostGuard guard;
//   std::optional<ServerResponse> refusal = guard.RefuseHost(request, options.web_external_hosts);   // none: allowed
//   if (!refusal) refusal = RefuseOrigin(request, options.web_external_hosts);
//
// DNS rebinding: evil.example resolves to the attacker's server, then to the agent. For the browser, the page and the agent are
// one origin, so that the page reads everything. The browser sends `Host: evil.example`, which no script can change. These
// hosts are safe, since an attacker cannot make a browser resolve them:
//   - an IP address;
//   - localhost, and names below .localhost, .local, .internal and .home.arpa, which the public DNS does not have;
//   - a name without a dot, such as a container's or a compose service's: it cannot be registered in the public DNS;
//   - this machine's host name, and its fully qualified name;
//   - the names of the setting `web_external_host`.
// Another host gets 421, with two exceptions for the paths that programs read, /metrics, /-/healthy and /-/ready. Prometheus
// scrapes agents by all sorts of DNS names, so any name is allowed there if the client is no browser. A browser is known by
// `deflate` in Accept-Encoding: each one sends it, and a script cannot set the header. Only with a header Range the browser
// sends `identity` instead, which counts too, as do headers that a script can avoid. A client without Host is no browser
// either.
//
// Behind TLS or a password, RefuseHost is not needed: the browser finds no certificate for evil.example, and sends it no
// password.
//
// Cross-site requests: a page of any site can make a browser send a POST, without reading the response. A method other than GET
// and HEAD is refused with 403 unless Sec-Fetch-Site is `same-origin` or `none`, or Origin is missing, that of Host, or a name
// of `web_external_host`. curl sends neither header.
//
// Two Host headers, or one that is no host, get 400.
//
// Thread safety: any thread. The first request for an unknown name looks up this machine's own.
class HostGuard {
 public:
  // `own_names`: this machine's; for tests. Null: those of the resolver.
  explicit HostGuard(std::function<std::vector<std::string>()> own_names = nullptr);

  // `external_hosts`: of the setting, in lower case. One that begins with a dot stands for all names that end with it.
  std::optional<ServerResponse> RefuseHost(const ServerRequest& request, const std::vector<std::string>& external_hosts);

 private:
  bool IsSafe(const std::string& host, const std::vector<std::string>& external_hosts);
  bool IsOwnName(const std::string& host);

  const std::function<std::vector<std::string>()> look_up_;
  std::atomic<bool> asked_ = false;
  Mutex mutex_;
  std::vector<std::string> own_names_ PERSIA_GUARDED_BY(mutex_);  // in lower case
};

// A request other than GET and HEAD from a page of another site.
std::optional<ServerResponse> RefuseOrigin(const ServerRequest& request, const std::vector<std::string>& external_hosts);

}  // namespace persia::agent
