// Stands before the pages: lets in whom the file of `web_config_file` names, and reads it again when it has changed.
//
//   WebAccess access("/etc/persia/web.yaml");
//   Status opened = access.Open();
//   std::optional<ServerResponse> refusal = access.Refuse(request);   // none: come in
//
// A new file that is broken, or that would open closed pages to everybody, changes nothing and is told once. TLS stays as it
// was at the start. Thread safety: Refuse: any thread; the rest: one thread, before.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "app/log.h"
#include "app/web_config.h"
#include "model/result.h"
#include "net/http_server.h"
#include "net/password_check.h"
#include "net/watched_file.h"

namespace persia::agent {

class WebAccess {
 public:
  explicit WebAccess(std::string path) : file_("web_config_file", std::move(path)) {}

  Status Open();
  [[nodiscard]] const std::optional<ListenerTls>& tls() const { return first_.tls; }
  std::optional<ServerResponse> Refuse(const ServerRequest& request);

 private:
  std::shared_ptr<PasswordCheck> Current();
  std::string TakeOver(const std::string& text);

  WebConfig first_;
  StateLog log_{"web.config"};

  std::mutex mutex_;  // guards what follows
  WatchedFile file_;
  std::string text_;                          // as looked at last, good or not
  std::string wrong_;                         // what is wrong with it
  std::map<std::string, std::string> users_;  // those in use
  std::shared_ptr<PasswordCheck> check_;      // null: everybody may
};

}  // namespace persia::agent
