// The turns of the agents of one run: one collects, the others wait until it has ended, and the last one ends the run.
//
//   std::optional<Result<JobSession>> session = BeginInTurn(options, patience, starter, wait);
//   ... collect and push
//   EndTurn(session->value(), end, finish, end_run);
//
// Thread safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "config/options.h"
#include "job/job_session.h"

namespace persia::agent {

// The lock of an `exec` among those of its run (JobDirectory::FileOfOthers), by the descriptor that its agent shares with its
// supervisor.
struct Place {
  int fd = -1;  // none: of `run`, or of a job without that file
  uint64_t number = 0;
};

// What an agent of `exec` does while another one collects.
struct TurnWait {
  Place place = {};
  // A former agent of this `exec` was killed: it may have ended the run.
  bool is_restarted = false;
  // Whether the command of this agent has ended.
  std::function<bool()> command_has_ended;
  // Waits for a moment. True: the agent was asked to end.
  std::function<bool()> pause;
  // Called once, before the first pause.
  std::function<void(const JobSession& session)> on_wait;
};

// The session of the agent that collects: this one, at the latest once the others of its run have ended. If another job or
// another run uses the directory, or the run is over, the session says so. Null: the command has ended, and the other agent
// will collect once more.
std::optional<Result<JobSession>> BeginInTurn(const AgentOptions& options, std::chrono::milliseconds patience,
                                              const JobStarter& starter, const TurnWait& wait);

struct TurnEnd {
  Place place = {};
  // Called after `finish`: whether the run ends, unless another `exec` of it goes on.
  std::function<bool()> is_complete;
  bool deletes_groups = false;  // unless another `exec` of the run goes on
};

// The end of the agent that collects. `finish` collects and pushes for the last time, and deletes the job's groups if it is
// told to; `end_run` ends the run. From then on this `exec` is none of the others.
void EndTurn(JobSession& session, const TurnEnd& end, const std::function<void(bool deletes_groups)>& finish,
             const std::function<void()>& end_run);

}  // namespace persia::agent
