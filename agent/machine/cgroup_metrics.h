// `persia_cgroup_*`: memory, processor time and disk traffic of the job's cgroup, of v2 or v1.
//
// A cgroup also has the limits of the cgroups above it, and the lowest limit counts. Memory in use, peak and throttling are
// those of the cgroup with that limit, because all cgroups below it share the limit.
//
// Thread safety: none.
#pragma once

#include "machine/kernel_files.h"
#include "machine/machine_reading.h"

namespace persia::agent {

// Values that the kernel does not have are left out.
void ReadCgroup(KernelFiles& files, const CgroupPaths& paths, MachineReading& reading);

// `persia_pressure_*`: for how long processes waited for processors, memory and disks (PSI), of the host and of the job's
// cgroup.

void ReadPressure(KernelFiles& files, const CgroupPaths& paths, MachineReading& reading);

}  // namespace persia::agent
