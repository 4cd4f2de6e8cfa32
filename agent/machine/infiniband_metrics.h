// `persia_infiniband_*`: the ports of the host's InfiniBand and RoCE adapters, at most 32 of them.
//
// Thread safety: none.
#pragma once

#include "machine/kernel_files.h"
#include "machine/machine_reading.h"

namespace persia::agent {

// A host without adapters has no values.
void ReadInfiniband(KernelFiles& files, MachineReading& reading);

}  // namespace persia::agent
