// Addresses of the names in `gateway_address` (dns+name:port), looked up periodically.
//
// An address that appears in an answer is used immediately. One that disappears is kept for two minutes, since a gateway that
// restarts is missing from DNS for a while; its groups wait for it. A lookup that fails changes nothing. No call waits for a
// slow resolver, not even Stop.
//
//   GatewayNames names({});
//   names.SetNames({"gateways"});
//   names.Start([&] { agent.GatewaysMoved(); });
//   names.Addresses("gateways")          // empty as long as no answer came
//   names.Stop();                        // `changed` is not called any more
//
// Thread safety: any method but Start and Stop from any thread. `changed` is called in the thread `gateway names`.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "net/name_lookup.h"

namespace persia::agent {

class GatewayNames {
 public:
  using Clock = std::chrono::steady_clock;
  using Answer = Result<std::vector<std::string>>;

  struct Options {
    std::chrono::milliseconds interval = std::chrono::seconds(30);
    std::chrono::milliseconds forget_after = std::chrono::minutes(2);
    std::function<Answer(const std::string& name)> look_up = LookUpAll;
    std::function<Clock::time_point()> now = Clock::now;
    // Called after each answer; `error` is empty after a good one. `known`: the name has addresses.
    std::function<void(const std::string& name, const std::string& error, bool known)> answered = [](auto&&...) {};
  };

  explicit GatewayNames(Options options) : options_(std::move(options)) {}
  ~GatewayNames() { Stop(); }

  void Start(std::function<void()> changed);
  void Stop();
  // From now on only these names are looked up; new ones immediately.
  void SetNames(const std::set<std::string>& names);
  // Looks all names up immediately, or right after a lookup that is in progress; addresses that the answers lack are dropped
  // without delay.
  void LookUpNow();
  [[nodiscard]] std::vector<std::string> Addresses(const std::string& name);
  // Waits until each name has had an answer or an error, and `changed` was called; for at most `limit`.
  void AwaitFirst(std::chrono::milliseconds limit);

 private:
  struct Name {
    std::map<std::string, Clock::time_point> addresses;  // and when an answer had them last
    bool answered = false;
    bool drops_at_once = false;  // the next answer drops missing addresses without delay, as LookUpNow promises
    bool in_progress = false;
    bool is_outdated = false;  // the lookup in progress began before LookUpNow: another one follows
  };
  // Shared with the threads of lookups, which may outlive this object.
  struct Answers {
    Mutex mutex;
    CondVar wake;
    std::vector<std::pair<std::string, Answer>> waiting PERSIA_GUARDED_BY(mutex);
  };
  struct Event {
    std::string name;
    std::string error;
    bool known = false;
  };
  struct News {
    std::vector<Event> events;
    bool changed = false;
    bool all_answered = false;
  };

  void Run();
  std::optional<News> AwaitNews();
  void StartLookUp(const std::string& name) PERSIA_REQUIRES(answers_->mutex);
  News TakeAnswers() PERSIA_REQUIRES(answers_->mutex);
  bool Update(Name& name, const Answer& answer) const;

  const Options options_;
  std::function<void()> changed_;
  const std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();
  std::map<std::string, Name> names_ PERSIA_GUARDED_BY(answers_->mutex);
  Clock::time_point next_ PERSIA_GUARDED_BY(answers_->mutex){};
  bool settled_ PERSIA_GUARDED_BY(answers_->mutex) = false;  // each name was answered, and `changed` called
  bool stopping_ PERSIA_GUARDED_BY(answers_->mutex) = false;
  std::thread thread_;
};

}  // namespace persia::agent
