// Asks many agents for their status, each in its own thread, so that a dead, slow or lying one delays no other.
//
//   Fleet fleet({.interval = 1s}, finder);
//   fleet.AwaitAnswers(5s);
//   std::vector<AgentView> views = fleet.Views();   // never waits for the network
//
// Thread safety: Views and AwaitAnswers: any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "net/gateway_access.h"
#include "top/job_status.h"
#include "top/targets.h"

namespace persia::agent {

struct AgentView {
  std::string name{};
  std::string url{};  // of its page, as of Target
  // The last good answer; null: none yet.
  std::shared_ptr<const JobStatus> status{};
  // CPUs that each rank uses, in the order of the status; nothing for a rank whose use is not known.
  std::shared_ptr<const std::vector<std::optional<double>>> cpus{};
  // Why the last poll failed; empty: it did not.
  std::string problem{};
  bool ended = false;     // as of Target
  bool answered = false;  // with a status or a problem
};

class Fleet {
 public:
  struct Options {
    std::chrono::milliseconds interval{1000};
    // From the name lookup to the last byte.
    std::chrono::milliseconds timeout{3000};
    std::chrono::milliseconds longest_backoff{15'000};
    std::chrono::milliseconds find_interval{5000};
    size_t max_body_bytes = 4 << 20;
    GatewayAccessOptions access{};
  };

  // Starts the threads. Throws std::system_error if the system cannot start them.
  Fleet(Options options, std::function<std::vector<Target>()> find);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  [[nodiscard]] std::vector<AgentView> Views() const;
  // Waits until the targets are known and each has answered or failed, or for `limit`.
  void AwaitAnswers(std::chrono::milliseconds limit);

 private:
  class Agent;

  void FindTargets();
  void Take(const std::vector<Target>& targets);

  const Options options_;
  const std::function<std::vector<Target>()> find_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ PERSIA_GUARDED_BY(mutex_) = false;
  bool found_ PERSIA_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<Agent>> agents_ PERSIA_GUARDED_BY(mutex_);
  std::thread finder_;
};

}  // namespace persia::agent
