// Runs the whole job on this machine: a process for each role, joined over loopback.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace embedding_job {

// Starts all roles as children, with the given options, forwards SIGINT, SIGTERM and SIGHUP to them, and waits until all have
// ended. If one fails, ends the others. Returns 0 if all succeeded. Throws JobError.
//
// REQUIRES: this process has one thread.
int RunAll(const Options& options, const std::vector<std::string>& arguments);

}  // namespace embedding_job
