// The agent's commands: what main calls once the command line is understood. Each returns the process's exit code.
#pragma once

#include "app/command_line.h"
#include "app/config.h"

namespace persia::agent {

// As any Unix tool has it; under exec the command's own codes count, and 125 is ours.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitNotUnderstood = 2;
inline constexpr int kExitRefused = 125;

// Collects and pushes beside a job, until a signal, or until its last worker has ended.
int RunCommand(const CommandLine& line, const Config& config, const ConfigSources& sources);
// Runs the job's command, collects and pushes while it runs.
int ExecuteCommand(const CommandLine& line, const Config& config, const ConfigSources& sources);
// Prints the job's metrics.
int OnceCommand(const Config& config);
// Prints what is wrong, or which settings would be used.
int CheckConfigCommand(const Config& config);

}  // namespace persia::agent
