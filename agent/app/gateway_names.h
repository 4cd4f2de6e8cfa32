// What the names in `gateway_address` (dns+name:port) stand for, looked up again and again while the agent runs.
//
// An address that an answer has is taken at once. One that answers no longer have is kept for two minutes, as a gateway that
// starts anew leaves its name for a while and comes back; its groups wait for it meanwhile. A look-up that fails changes
// nothing. A resolver may take as long as it wants: nobody waits for it, also not at the end.
//
//   GatewayNames names({.log = log});
//   names.Want({"gateways"});            // by those who need them
//   names.Start([&] { agent.GatewaysMoved(); });
//   names.Addresses("gateways")          // empty as long as no answer came
//   names.Stop();                        // `changed` is not called any more
//
// Thread safety: any method, from any thread, but for Start and Stop. `changed` is called in a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model/result.h"
#include "net/name_lookup.h"

namespace persia::agent {

class GatewayNames {
 public:
  using Clock = std::chrono::steady_clock;
  using Answer = Result<std::vector<std::string>>;

  struct Options {
    std::chrono::milliseconds every = std::chrono::seconds(30);
    std::chrono::milliseconds gone_after = std::chrono::minutes(2);
    std::function<Answer(const std::string& name)> look_up = LookUpAll;
    std::function<Clock::time_point()> now = Clock::now;
    // An answer came; empty error: a good one.
    std::function<void(const std::string& name, const std::string& error, bool known)> told = [](auto&&...) {};
  };

  explicit GatewayNames(Options options);
  ~GatewayNames();

  void Start(std::function<void()> changed);
  void Stop();
  // These names and no others are looked up from now on; new ones at once.
  void Want(const std::set<std::string>& names);
  // As somebody asks for: the next answers hold as they are, and what they do not have is gone.
  void LookUpNow();
  [[nodiscard]] std::vector<std::string> Addresses(const std::string& name);
  // Until each name has had an answer, of whatever kind, and `changed` was called; for at most `limit`.
  void AwaitFirst(std::chrono::milliseconds limit);

 private:
  struct Known {
    std::map<std::string, Clock::time_point> addresses;  // when an answer had them last
    bool answered = false;
    bool as_it_is = false;  // the next answer is
    bool asking = false;
  };
  // What a look-up's thread leaves behind; it may end after all else.
  struct Mailbox {
    std::mutex mutex;
    std::condition_variable wake;
    std::vector<std::pair<std::string, Answer>> answers;
  };

  void Loop();
  void Ask(const std::string& name);
  bool Take(Known& known, const Answer& answer) const;

  const Options options_;
  const std::shared_ptr<Mailbox> mail_ = std::make_shared<Mailbox>();
  std::function<void()> changed_;

  // Guarded by mail_->mutex.
  std::map<std::string, Known> names_;
  Clock::time_point next_{};
  bool settled_ = false;  // each name was answered, and that was told
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace persia::agent
