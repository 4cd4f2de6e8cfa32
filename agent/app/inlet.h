// Opens the named pipe for Benchmark AI's `emit`, and a segment of the agent's own for what comes through it.
//
// Thread safety: called once, by the main thread, while no other thread looks at the environment.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/job_session.h"
#include "app/options.h"
#include "inlet/emit_inlet.h"
#include "model/result.h"

namespace persia::agent {

// Null if no pipe is wanted.
Result<std::unique_ptr<EmitInlet>> OpenInlet(const AgentOptions& options, const JobSession& session);

// What a command finds in its environment, so that its `emit` finds the pipe; what is set already stays.
std::vector<std::pair<std::string, std::string>> InletEnvironment(const AgentOptions& options);

}  // namespace persia::agent
