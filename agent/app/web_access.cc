#include "app/web_access.h"

#include "net/basic_authorization.h"

namespace persia::agent {

Status WebAccess::Open() {
  const Result<std::string> text = file_.Read();
  if (!text.ok()) return Error{text.error()};
  first_ = ParseWebConfig(file_.path(), text.value());
  if (!first_.errors.empty()) return Error{first_.errors.front()};
  text_ = text.value();
  users_ = first_.users;
  if (!users_.empty()) check_ = std::make_shared<PasswordCheck>(users_);
  return Done{};
}

std::optional<ServerResponse> WebAccess::Refuse(const ServerRequest& request) {
  const std::shared_ptr<PasswordCheck> check = Current();
  if (check == nullptr) return std::nullopt;
  const auto given = ParseBasicAuthorization(request.Header("Authorization"));
  const auto verdict = given ? check->Check(given->user, given->password) : PasswordCheck::Verdict::kWrong;
  switch (verdict) {
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

std::shared_ptr<PasswordCheck> WebAccess::Current() {
  const std::lock_guard lock(mutex_);
  const Result<std::string> text = file_.Read();
  if (text.ok() && text.value() != text_) {
    text_ = text.value();
    wrong_ = TakeOver(text_);
  }
  const std::string& wrong = text.ok() ? wrong_ : text.error();
  if (wrong.empty()) {
    log_.Recovered("web_config_file \"" + file_.path() + "\" is good again, and in use");
  } else {
    log_.Bad(wrong, wrong + "; who may read the pages stays as it was");
  }
  return check_;
}

// Gives what is wrong with it, and then nothing changes.
std::string WebAccess::TakeOver(const std::string& text) {
  const WebConfig config = ParseWebConfig(file_.path(), text);
  if (!config.errors.empty()) return config.errors.front();
  // Somebody may be at writing it: what is in it by now would let everybody in.
  if (config.users.empty() && !users_.empty()) {
    return "web_config_file \"" + file_.path() + "\" names no users any more, which is taken over at a start only";
  }
  if (config.tls != first_.tls) {
    LogWarning("web.config", "tls_server_config in \"" + file_.path() + "\" has changed; it is read at the start only");
  }
  if (config.users != users_) {
    users_ = config.users;
    check_ = std::make_shared<PasswordCheck>(users_);
    LogInfo("web.config", "web_config_file \"" + file_.path() + "\" has changed: its users may read the pages from now on");
  }
  return "";
}

}  // namespace persia::agent
