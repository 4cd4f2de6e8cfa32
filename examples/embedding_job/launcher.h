// Runs the whole job on this machine: a process for each role, joined over loopback.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace embedding_job {

// Starts all roles as children, with the options that were given, passes SIGINT, SIGTERM and SIGHUP on to them, and waits until
// all have ended. Returns the exit code: 0 if all ended well. When one fails the others are ended, too. Throws JobError.
//
// REQUIRES: this process has one thread.
int RunAll(const Options& options, const std::vector<std::string>& arguments);

}  // namespace embedding_job
