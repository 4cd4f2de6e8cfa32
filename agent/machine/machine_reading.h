// The sources of this folder, and the values that they read, before these have a layout.
//
//   constexpr MachineFamily kFree{"persia_filesystem_avail_bytes", MetricType::kGauge, "..."};
//   reading.Add(kFree, {{"use", "state"}}, 12.0);
//   ReadCgroup(files, paths, reading);
//
// Values that the kernel does not have are left out.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel/cgroups.h"
#include "model/rows.h"

namespace persia::agent {

using MachineFamily = Rows::Family;

// Microseconds, which many files of the kernel have, in seconds.
inline constexpr double kMicro = 1e-6;

class MachineReading {
 public:
  struct Series {
    const MachineFamily* family = nullptr;
    Labels labels;
    double value = 0;
  };

  // REQUIRES: `family` is a constant; no other series has this family and these labels.
  void Add(const MachineFamily& family, Labels labels, double value) {
    std::ranges::sort(labels);
    series_.push_back({&family, std::move(labels), value});
  }
  // Adds nothing if the kernel has no such number.
  void Add(const MachineFamily& family, Labels labels, std::optional<uint64_t> number, double scale = 1) {
    if (number) Add(family, std::move(labels), static_cast<double>(*number) * scale);
  }

  // Sorted by family and labels.
  std::vector<Series> TakeSorted() {
    std::ranges::sort(series_, [](const Series& a, const Series& b) {
      return std::tie(a.family->name, a.labels) < std::tie(b.family->name, b.labels);
    });
    return std::move(series_);
  }

 private:
  std::vector<Series> series_;
};

// `persia_cgroup_*`: memory, processor time and disk traffic of the job's cgroup, of v2 or v1.
//
// A cgroup also has the limits of the cgroups above it, and the lowest limit counts. Memory in use, peak and throttling are
// those of the cgroup with that limit, because all cgroups below it share the limit.
void ReadCgroup(KernelFiles& files, const CgroupPaths& paths, MachineReading& reading);
// `persia_pressure_*`: for how long processes waited for processors, memory and disks (PSI), of the host and of the job's
// cgroup.
void ReadPressure(KernelFiles& files, const CgroupPaths& paths, MachineReading& reading);
// `persia_network_*`: the interfaces of the job's network namespace, and TCP's retransmissions in it. `process`: a pid in that
// namespace, or "self".
//
// Left out: the loopback, the ends of other containers' interfaces and bridges between them (by the names that container
// runtimes give them), interfaces that never received a byte, and all but the first 16.
void ReadNetwork(KernelFiles& files, const std::string& process, MachineReading& reading);
// `persia_infiniband_*`: the ports of the host's InfiniBand and RoCE adapters, at most 32 of them.
void ReadInfiniband(KernelFiles& files, MachineReading& reading);

}  // namespace persia::agent
