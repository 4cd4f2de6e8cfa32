#include "health/rank.h"

#include <algorithm>

namespace persia::agent {

bool IsRank(const WorkerProcess& process) { return process.alive && process.ordinal == 0 && !process.phase_seconds.empty(); }

RankProcessKey RankProcessKeyOf(const WorkerProcess& process) {
  return {LabelValueOf(process.identity, "role"), LabelValueOf(process.identity, "instance"), process.pid_namespace,
          process.pid, process.start_ticks};
}

std::string LabelValueOf(const Identity& identity, std::string_view name) {
  const auto found = std::ranges::find(identity.labels, name, &Labels::value_type::first);
  return found == identity.labels.end() ? "" : found->second;
}

std::string RankName(const Identity& identity) {
  const std::string role = LabelValueOf(identity, "role");
  return role + (role.empty() ? "" : " ") + LabelValueOf(identity, "instance");
}

std::string PhaseName(std::string_view phase) { return phase == "other" ? "none of its phases" : std::string(phase); }

}  // namespace persia::agent
