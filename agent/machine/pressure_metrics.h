// `persia_pressure_*`: for how long processes waited for processors, memory and disks (PSI), of the host and of the job's
// cgroup.
//
// Thread safety: none.
#pragma once

#include "machine/cgroup_paths.h"
#include "machine/kernel_files.h"
#include "machine/machine_reading.h"

namespace persia::agent {

void ReadPressure(KernelFiles& files, const CgroupPaths& paths, MachineReading& reading);

}  // namespace persia::agent
