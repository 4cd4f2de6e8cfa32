// Who this process is, from the environment, the agent's word, and what the program said in Init.
#pragma once

#include <cstdint>
#include <string>

#include "persia/metrics/init.h"

namespace persia::metrics {

// What the agent left in the job's directory for its workers.
struct AgentConf {
  bool enabled = true;
  std::string run_id;  // "" if none is known, or the run has ended
};

// Reads `agent.conf` of an open directory; a missing or unreadable one gives the defaults.
AgentConf ReadAgentConf(int directory_fd);

// Who this process is and whether and where it exports.
struct Identity {
  std::string job;
  std::string role;
  int32_t replica = 0;
  std::string run_id;        // PERSIA_RUN_ID; from the agent's word once the directory is known
  std::string torch_run_id;  // used if neither gives one
  uint32_t restart_count = 0;
  LabelSet labels;

  std::string metrics_dir;
  uint64_t segment_bytes = 0;  // 0: the default
  bool enabled = true;
  bool opted_in = false;  // by PERSIA_METRICS_DIR or PERSIA_JOB_NAME

  friend bool operator==(const Identity&, const Identity&) = default;
};

// The environment wins over `options`. A bad value in the environment is logged in one line and treated as absent.
Identity ResolveIdentity(const Options& options);

}  // namespace persia::metrics
