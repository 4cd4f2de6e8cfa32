// What an agent is made of: its settings, its job, and the ways to its gateways.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "gateways/push_lanes.h"
#include "job/emit_receiver.h"
#include "job/job_session.h"
#include "naming/naming.h"
#include "own/exec_metrics.h"

namespace persia::agent {

// Where the agent pushes, and how that changes.
struct PushRoutes {
  PushLanes::Sinks sinks{};  // at the start, one for each gateway; none: nothing is pushed
  // Whether these settings lead elsewhere, or otherwise, than those before; null: never. This and the next are called by one
  // thread at a time.
  std::function<bool(const AgentOptions&)> changes{};
  // Gives the sinks for these settings. No push is running when it is called.
  std::function<PushLanes::Sinks(const AgentOptions&)> take{};
  // What the gateways refused is tried again with the next push; may be null.
  std::function<void()> retry_refused{};
  // The value of the label `agent` by which all series are told from another agent's; empty, or null: none.
  std::function<std::string()> agent_label{};
};

struct AgentSetup {
  AgentOptions options;
  size_t config_errors = 0;  // that `options` were loaded with
  std::string version;
  std::string directory;
  std::string run_id;
  std::optional<gid_t> group;  // of a shared directory
  StateLocation state;
  // Makes a removed directory again; null: nothing does. Used by the collector thread; outlives the agent.
  JobSession* session = nullptr;
  bool run_begins = false;  // the state is of an earlier run
  std::string ip_addr;
  // After so long without a living worker, once there was one, `on_idle` is called, once.
  std::optional<std::chrono::milliseconds> idle_limit;
  std::function<void()> on_idle;
  // What `exec` knows of its command; null if none is run. It outlives the agent, and is read by the collector thread.
  ExecRecord* exec = nullptr;
  // The named pipe's reader, for its counts; null if there is none. It outlives the agent.
  const EmitReceiver* emit_receiver = nullptr;
  // What POST /-/reload calls, if it is enabled: returns the errors of the settings, one line each.
  std::function<std::vector<std::string>()> reload{};
};

// How long pushes may take by these settings.
PushLanes::Pace PaceOf(const AgentOptions& options);

// How metrics are named by these settings. Never null.
std::shared_ptr<const Naming> NamingOf(const AgentOptions& options);

}  // namespace persia::agent
