// The events by which the agent itself reports changes of the job: a worker that died, a rank that others wait for.
//
//   JobEvent event = LoggedAgentEvent(LogLevel::kWarning, "worker_died", "trainer rep_3 died: SIGKILL", now);
//   event.identity = process.identity;
//
// Their type is "persia.agent", and their metadata begin with `text`. Thread safety: any function, from any thread.
#pragma once

#include <chrono>
#include <string>

#include "base/log.h"
#include "model/job_event.h"

namespace persia::agent {

[[nodiscard]] JobEvent AgentEvent(std::string name, std::string text, std::chrono::system_clock::time_point now);
// With a line in the log, of which the event is `name` with a dot after its first word: "worker.died". REQUIRES: `level` is
// info or warning; `name` has two words or more.
[[nodiscard]] JobEvent LoggedAgentEvent(LogLevel level, std::string name, std::string text,
                                        std::chrono::system_clock::time_point now);

}  // namespace persia::agent
