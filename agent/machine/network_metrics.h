// `persia_network_*`: the interfaces of the job's network namespace, and TCP's retransmissions in it.
//
// Left out: the loopback, the ends of other containers' interfaces and bridges between them (by the names that container
// runtimes give them), interfaces that never received a byte, and all but the first 16.
//
// Thread safety: none.
#pragma once

#include <string>

#include "machine/kernel_files.h"
#include "machine/machine_reading.h"

namespace persia::agent {

// `process`: a pid in that namespace, or "self".
void ReadNetwork(KernelFiles& files, const std::string& process, MachineReading& reading);

// `persia_infiniband_*`: the ports of the host's InfiniBand and RoCE adapters, at most 32 of them.

// A host without adapters has no values.
void ReadInfiniband(KernelFiles& files, MachineReading& reading);

}  // namespace persia::agent
