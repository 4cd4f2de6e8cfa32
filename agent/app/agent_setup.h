// The input of an agent: its settings, its job, and its gateway.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "config/options.h"
#include "job/emit_receiver.h"
#include "job/job_session.h"
#include "model/ends.h"
#include "naming/naming.h"
#include "own/exec_metrics.h"
#include "push/group_ledger.h"
#include "push/pusher.h"

namespace persia::agent {

// The settings in use, which a reload replaces.
//
// Thread safety: any method, from any thread.
class LiveOptions {
 public:
  explicit LiveOptions(AgentOptions options) : options_(std::make_shared<const AgentOptions>(std::move(options))) {}

  // The same object until they are replaced.
  [[nodiscard]] std::shared_ptr<const AgentOptions> Get() const {
    const MutexLock lock(mutex_);
    return options_;
  }
  void Set(AgentOptions options) {
    auto fresh = std::make_shared<const AgentOptions>(std::move(options));
    const MutexLock lock(mutex_);
    options_ = std::move(fresh);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const AgentOptions> options_ PERSIA_GUARDED_BY(mutex_);
};

// Makes the gateway from the settings.
//
// Thread safety: any thread.

// The gateway of these settings, whose groups are in `ledger`.
Pusher::Target MakeGateway(const AgentOptions& options, GroupLedger& ledger);

// Whether both have the same gateway, and push to it in the same way.
bool HaveSameGateway(const AgentOptions& a, const AgentOptions& b);

// The address of this host on the route to the gateway, if one is set, else on the default route. Resolves the gateway's name,
// which may take seconds.
std::string OwnAddress(const AgentOptions& options);

// The input of an agent: its settings, its job, and its gateway.
struct AgentSetup {
  AgentOptions options;
  size_t config_errors = 0;  // found while `options` were loaded
  std::string version;
  std::string directory;
  std::string run_id;
  std::optional<gid_t> group;  // of a shared directory
  StateLocation state;
  // For a snapshot of a job that another agent may collect: nothing is created or written. Its `directory`, `run_id` and
  // `group` are those above.
  std::optional<JobView> view;
  // Creates a removed directory again; null: none does. Used by the collector thread; outlives the agent.
  JobSession* session = nullptr;
  bool run_begins = false;  // the state is of an earlier run
  // Which attempt of the run the command of `exec` is; none: not known, or no command is run.
  std::optional<RunAttempt> attempt;
  std::string ip_addr;
  // `on_idle` is called once, when no worker has been alive for this long; only after there was a worker.
  std::optional<std::chrono::milliseconds> idle_limit;
  std::function<void()> on_idle;
  // The record of the command that `exec` runs; null if there is none. It outlives the agent; the collector thread reads it.
  ExecRecord* exec = nullptr;
  // The named pipe's reader, for its counts; null if there is none. It outlives the agent.
  const EmitReceiver* emit_receiver = nullptr;
  // Returns the gateway of these settings; null: nothing is pushed.
  std::function<Pusher::Target(const AgentOptions&)> gateway{};
  // The value of the label `agent`, which distinguishes all series from another agent's; empty, or null: no label.
  std::function<std::string()> agent_label{};
  // The file to which the page is written after the end; empty: it is not kept. Called once the last collection is over; null:
  // none.
  std::function<std::string()> kept_page{};
  // Called by POST /-/reload, if that is enabled. Returns the errors of the settings, one line each.
  std::function<std::vector<std::string>()> reload{};
};

// The time limits of pushes with these settings.
Pusher::Pace PaceOf(const AgentOptions& options);

// The identity of the agent's own metrics.
Identity AgentIdentity(const AgentSetup& setup);

// The naming of metrics with these settings. Never null.
std::shared_ptr<const Naming> NamingOf(const AgentOptions& options);

}  // namespace persia::agent
