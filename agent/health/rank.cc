#include "health/rank.h"

namespace persia::agent {

bool IsRank(const WorkerProcess& process) { return process.alive && process.ordinal == 0 && !process.phase_seconds.empty(); }

RankProcessKey RankProcessKeyOf(const WorkerProcess& process) {
  return {LabelValueOf(process.identity, "role"), LabelValueOf(process.identity, "instance"), process.pid_namespace,
          process.pid, process.start_ticks};
}

}  // namespace persia::agent
