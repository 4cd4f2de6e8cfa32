// The identity of this process, from the environment, the program's Options, and the agent's `agent.conf`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "persia/metrics/init.h"
#include "rank_variables.h"

namespace persia::metrics {
inline namespace abi_1 {

// The settings that a worker reads from `agent.conf`.
struct AgentConf {
  bool enabled = true;
  std::string run_id;  // "" if there is none, or if the run has ended
};

// Reads `agent.conf` in an open directory. A missing or unreadable file gives the defaults.
AgentConf ReadAgentConf(int directory_fd);

// The identity of this process, and whether and where it exports.
struct Identity {
  std::string job;
  std::string role;
  int32_t replica = 0;
  std::string run_id;        // PERSIA_RUN_ID, else the agent's, once `agent.conf` is read
  std::string torch_run_id;  // TORCHELASTIC_RUN_ID: used if neither gives a run id
  uint32_t restart_count = 0;
  LabelSet labels;
  bool forked = false;  // by a process that exports with the same role and replica

  std::string metrics_dir;
  std::optional<uint32_t> metrics_dir_group;  // the number of the group that shares it
  uint64_t segment_bytes = 0;                 // 0: the default
  bool enabled = true;
  bool opted_in = false;  // by PERSIA_METRICS_DIR or PERSIA_JOB_NAME

  // Which of these the environment or the Options give; the others are defaults.
  struct Given {
    bool job = false;
    bool metrics_dir = false;
    bool role = false;
    bool replica = false;

    friend bool operator==(const Given&, const Given&) = default;
  };
  Given gives;

  friend bool operator==(const Identity&, const Identity&) = default;
};

// The environment overrides `options`. `ranks`: of which `options` gives none. A bad value in the environment is logged in one
// line and ignored.
Identity ResolveIdentity(const Options& options, const OwnRanks& ranks);

}  // namespace abi_1
}  // namespace persia::metrics
