// `persia_cgroup_*`: memory, processor time and disk traffic of the job's cgroup, of v2 or v1.
//
// Limits: a cgroup also has those of the cgroups above it. The lowest one counts, and memory in use, peak and throttling are
// those of the cgroup that has it: it is full when all below it together have used it.
//
// Thread safety: none.
#pragma once

#include "machine/cgroup_paths.h"
#include "machine/kernel_files.h"
#include "machine/machine_reading.h"

namespace persia::agent {

// Values that the kernel does not have are left out.
void ReadCgroup(KernelFiles& files, const CgroupPaths& paths, MachineReading& reading);

}  // namespace persia::agent
