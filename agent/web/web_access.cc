#include "web/web_access.h"

#include "net/password_check.h"

namespace persia::agent {

Status WebAccess::Open() {
  const MutexLock lock(mutex_);
  const Result<std::string> text = file_.Read();
  if (!text.ok()) return Error{text.error()};
  const WebConfig config = ParseWebConfig(file_.path(), text.value());
  if (!config.errors.empty()) return Error{config.errors.front()};
  text_ = text.value();
  tls_ = config.tls;
  if (!config.users.empty()) SetUsers(config.users);
  return Done{};
}

std::optional<ServerResponse> WebAccess::Refuse(const ServerRequest& request) {
  const std::shared_ptr<PasswordCheck> check = Current();
  if (check == nullptr) return std::nullopt;
  const auto given = ParseBasicAuthorization(request.Header("Authorization"));
  switch (given ? check->Check(given->user, given->password) : PasswordCheck::Verdict::kWrong) {
    case PasswordCheck::Verdict::kRight:
      return std::nullopt;
    case PasswordCheck::Verdict::kBusy:
      return ServerResponse{
          .status = 429, .body = "Too many passwords are being checked; try again.\n", .headers = {{"Retry-After", "2"}}};
    case PasswordCheck::Verdict::kWrong:
      break;
  }
  return ServerResponse{.status = 401,
                        .body = "Unauthorized\n",
                        .headers = {{"WWW-Authenticate", "Basic realm=\"persia-metrics-agent\", charset=\"UTF-8\""}}};
}

bool WebAccess::IsProtected() {
  const MutexLock lock(mutex_);
  return tls_.has_value() || check_ != nullptr;
}

std::shared_ptr<PasswordCheck> WebAccess::Current() {
  const MutexLock lock(mutex_);
  const Result<std::string> text = file_.Read();
  if (text.ok() && text.value() != text_) {
    text_ = text.value();
    error_ = Apply(text_);
  }
  const std::string& error = text.ok() ? error_ : text.error();
  if (error.empty())
    log_.Recovered("web_config_file \"" + file_.path() + "\" is valid again and in use");
  else
    log_.Bad(error, error + "; the users stay as they were");
  return check_;
}

void WebAccess::SetUsers(const Users& users) {
  users_ = users;
  check_ = std::make_shared<PasswordCheck>(users);
}

// Returns the error of a text that is not applied.
std::string WebAccess::Apply(const std::string& text) {
  // TLS keeps its files of startup. If they are missing now, a user must still lose access at once.
  const WebConfig config = ParseWebConfig(file_.path(), text, TlsFiles::kLeave);
  if (!config.errors.empty()) return config.errors.front();
  // The file may be half written: its users must not disappear.
  if (config.users.empty() && !users_.empty())
    return "web_config_file \"" + file_.path() + "\" names no users any more; restart the agent to allow everyone";
  if (config.tls != tls_)
    LogWarning("web.config", "tls_server_config in \"" + file_.path() + "\" has changed; restart the agent to apply it");
  if (config.users != users_) {
    SetUsers(config.users);
    LogInfo("web.config", "web_config_file \"" + file_.path() + "\" has changed: its users are in use now");
  }
  return "";
}

}  // namespace persia::agent
