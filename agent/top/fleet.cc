#include "top/fleet.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/thread.h"
#include "base/timing.h"
#include "net/http_client.h"
#include "top/cpu_use.h"

namespace persia::agent {
namespace {

using Steady = std::chrono::steady_clock;

}  // namespace

// One target and its thread.
class Fleet::Agent {
 public:
  Agent(const Options& options, Target target, std::function<void()> answered)
      : options_(options),
        target_(std::move(target)),
        answered_(std::move(answered)),
        client_({.connect_timeout = options.timeout, .total_timeout = options.timeout, .access = options.access}) {
    view_.name = target_.name;
    view_.url = target_.url;
    view_.problem = target_.problem;
    view_.ended = target_.ended;
    view_.answered = target_.url.empty();
    if (target_.url.empty()) return;
    try {
      thread_ = StartThread(
          "top poll", [this] { Poll(); });
    } catch (const std::system_error& error) {
      view_.problem = std::string("cannot start a thread to ask it: ") + error.what();
      view_.answered = true;
    }
  }
  ~Agent() {
    Stop();
    if (thread_.joinable()) thread_.join();
  }
  // Does not wait.
  void Stop() {
    client_.Interrupt();
    const MutexLock lock(mutex_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  [[nodiscard]] const Target& target() const { return target_; }
  [[nodiscard]] AgentView View() const {
    const MutexLock lock(mutex_);
    return view_;
  }
  // A target that moved keeps the last answer until its new address answers.
  void StartFrom(const AgentView& last) {
    const MutexLock lock(mutex_);
    if (view_.status == nullptr) {
      view_.status = last.status;
      view_.cpus = last.cpus;
    }
  }

 private:
  void Poll() {
    Backoff backoff(options_.interval, std::max(options_.interval, options_.longest_backoff));
    Backoff fresh = backoff;
    for (auto next = Steady::now();;) {
      const bool good = Ask();
      answered_();
      if (good) backoff = fresh;
      const auto now = Steady::now();
      next = good ? std::max(now, next + options_.interval) : now + backoff.NextJittered();
      const MutexLock lock(mutex_);
      while (!stopping_ && Steady::now() < next) wake_.WaitUntil(mutex_, next);
      if (stopping_) return;
    }
  }

  bool Ask() {
    std::string body;
    bool too_large = false;
    HttpRequest request{.method = "GET", .url = target_.url + "/api/v1/status"};
    request.receive = [&](int, std::string_view piece) {
      too_large = body.size() + piece.size() > options_.max_body_bytes;
      if (!too_large) body += piece;
      return !too_large;
    };
    const auto response = client_.Send(request);
    Result<JobStatus> status = Error{""};
    if (!response.ok()) {
      status = Error{response.error()};
    } else if (response.value().status == 401 || response.value().status == 403) {
      status =
          Error{"refused with status " + std::to_string(response.value().status) + "; give --username and --password-file"};
    } else if (response.value().status != 200) {
      status = Error{"the answer has status " + std::to_string(response.value().status)};
    } else if (too_large) {
      status = Error{"the answer is larger than " + std::to_string(options_.max_body_bytes >> 20) + " MiB"};
    } else {
      status = ParseJobStatus(body);
    }
    if (!status.ok()) {
      const MutexLock lock(mutex_);
      view_.problem = status.error();
      view_.answered = true;
      return false;
    }
    auto cpus = std::make_shared<const std::vector<std::optional<double>>>(CpusOf(status.value()));
    auto taken = std::make_shared<const JobStatus>(std::move(status).value());
    const MutexLock lock(mutex_);
    view_.status = std::move(taken);
    view_.cpus = std::move(cpus);
    view_.problem.clear();
    view_.answered = true;
    return true;
  }

  std::vector<std::optional<double>> CpusOf(const JobStatus& status) {
    std::vector<std::optional<double>> cpus;
    for (auto& [name, use] : uses_) use.seen = false;
    for (const Rank& rank : status.ranks) {
      CpuUse& use = uses_[rank.Name()];
      cpus.push_back(use.Update(rank, status));
      use.seen = true;
    }
    std::erase_if(uses_, [](const auto& entry) { return !entry.second.seen; });
    return cpus;
  }

  const Options& options_;
  const Target target_;
  const std::function<void()> answered_;
  HttpClient client_;
  std::map<std::string, CpuUse> uses_;  // of the thread
  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ PERSIA_GUARDED_BY(mutex_) = false;
  AgentView view_ PERSIA_GUARDED_BY(mutex_);
  std::thread thread_;
};

Fleet::Fleet(Options options, std::function<std::vector<Target>()> find)
    : options_(std::move(options)), find_(std::move(find)), finder_(StartThread("top find", [this] { FindTargets(); })) {}

Fleet::~Fleet() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
    for (const auto& agent : agents_) agent->Stop();
  }
  finder_.join();
  std::vector<std::shared_ptr<Agent>> agents;
  {
    const MutexLock lock(mutex_);
    agents.swap(agents_);
  }
  for (const auto& agent : agents) agent->Stop();
}

void Fleet::FindTargets() {
  for (;;) {
    Take(find_());
    const auto next = Steady::now() + options_.find_interval;
    const MutexLock lock(mutex_);
    while (!stopping_ && Steady::now() < next) changed_.WaitUntil(mutex_, next);
    if (stopping_) return;
  }
}

// Starts and stops threads without the lock: Views does not wait for them.
void Fleet::Take(const std::vector<Target>& targets) {
  std::vector<std::shared_ptr<Agent>> old;
  {
    const MutexLock lock(mutex_);
    old = agents_;
  }
  const auto answered = [this] {
    const MutexLock lock(mutex_);
    changed_.NotifyAll();
  };
  std::vector<std::shared_ptr<Agent>> fresh;
  for (const Target& target : targets) {
    const auto same = std::find_if(old.begin(), old.end(), [&](const auto& agent) { return agent->target() == target; });
    if (same != old.end()) {
      fresh.push_back(*same);
      continue;
    }
    fresh.push_back(std::make_shared<Agent>(options_, target, answered));
    const auto moved =
        std::find_if(old.begin(), old.end(), [&](const auto& agent) { return agent->target().name == target.name; });
    if (moved != old.end()) fresh.back()->StartFrom((*moved)->View());
  }
  const MutexLock lock(mutex_);
  agents_.swap(fresh);
  found_ = true;
  changed_.NotifyAll();
}

std::vector<AgentView> Fleet::Views() const {
  const MutexLock lock(mutex_);
  std::vector<AgentView> views;
  views.reserve(agents_.size());
  for (const auto& agent : agents_) views.push_back(agent->View());
  return views;
}

void Fleet::AwaitAnswers(std::chrono::milliseconds limit) {
  const auto end = Steady::now() + limit;
  const MutexLock lock(mutex_);
  while (Steady::now() < end) {
    const auto waits = [](const auto& agent) { return !agent->View().answered; };
    if (found_ && std::none_of(agents_.begin(), agents_.end(), waits)) return;
    changed_.WaitUntil(mutex_, end);
  }
}

}  // namespace persia::agent
