// The commands of the program, one source file each. A command returns the process's exit code. REQUIRES: the settings have no
// errors, except for RunCommand and the two halves of `exec`.
#pragma once

#include <chrono>
#include <string_view>

#include "cli/command_line.h"
#include "config/config.h"
#include "job/job_session.h"

namespace persia::agent {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
// How long an agent waits for the lock of an agent that may have just been killed.
inline constexpr std::chrono::milliseconds kLockPatience(1000);
// Of `exec --strict`. Otherwise exec returns the exit code of its command.
inline constexpr int kExitRefused = 125;

// The settings of `exec`, whose agent has no stdout.
Config LoadConfigOfExec(const ConfigSources& sources);

// Logs each error of the settings with its consequence; if `strict`, logs one line that ends with `refusal`.
// Returns whether the errors refuse the command.
bool RefusedBySettings(const Config& config, bool strict, std::string_view refusal);

// Who starts a job under `exec`: the parent of this process, and the command with its working directory.
JobStarter StarterOf(const CommandLine& line);

// Collects and pushes for a job that something else starts, until a signal, or until the job's last worker has ended.
int RunCommand(const CommandLine& line, const Config& config, const ConfigSources& sources);
// Tells the supervisor where the command begins, before anything that may hang.
void TellCommand(const CommandLine& line, int memory);
// Prepares the start of the job's command: reads the settings, opens the job's directory and the named pipe, and writes the
// result into `memory`, the descriptor of a supervisor::Preparation.
int PrepareExec(const CommandLine& line, const Config& config, const ConfigSources& sources, int memory);
// Makes the supervisor end with `exit_code` instead.
int RefuseExec(int exit_code, int memory);
// Collects and pushes while the command runs. `memory`: descriptor of the supervisor::Record.
int CollectForExec(const CommandLine& line, const Config& config, const ConfigSources& sources, int memory);
// Prints the job's metrics.
int OnceCommand(const Config& config);
// Prints the settings.
int CheckConfigCommand(const Config& config);
// Prints how metrics are exposed.
int ExplainCommand(const CommandLine& line, const Config& config);
// Prints the summary of a run, or compares two.
int ReportCommand(const ReportArguments& arguments);
// Shows jobs in the terminal.
int TopCommand(const TopArguments& arguments);

}  // namespace persia::agent
