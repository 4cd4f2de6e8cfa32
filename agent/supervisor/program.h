// Finds and executes programs as a shell does.
#pragma once

namespace persia::supervisor {

// Executes argv[0], looked up in PATH; a file that is no program is executed by /bin/sh. Returns, with errno, only on failure.
// Async-signal-safe.
void Execute(char** argv, char** environment);

// Executes the agent's program, persia-metrics-agentd, in the directory of this program, and changes the environment for it
// (library_path.h). Returns only on failure, after a log line: the exit code.
int ExecuteAgent(char** argv, char** environment);

// For a program that was looked up but not executed: 127 if there is none, else 126.
int ExitCodeOf(int error);

}  // namespace persia::supervisor
