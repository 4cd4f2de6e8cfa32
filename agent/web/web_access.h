// Authenticates requests by the users of `web_config_file`, and reads the file again when it changes.
//
//   WebAccess access("/etc/persia/web.yaml");
//   Status opened = access.Open();
//   std::optional<ServerResponse> refusal = access.Refuse(request);   // none: allowed
//
// A changed file that is invalid, or that has no users where there were some, is not applied, and logged once. TLS settings are
// those of startup. Thread safety: Refuse and IsProtected: any thread; Open, before it: one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "config/web_config.h"
#include "files/watched_file.h"
#include "net/http_server.h"
#include "net/password_check.h"

namespace persia::agent {

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

}  // namespace persia::agent
