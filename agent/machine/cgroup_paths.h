// Where the files of a process's cgroup are: cgroup v2, v1, or both, as this mount namespace shows them.
//
// Thread safety: a pure function of the files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "machine/kernel_files.h"

namespace persia::agent {

// Directories of one hierarchy, from the process's cgroup to the topmost visible one. Empty if the process is in the root of
// the hierarchy, where the kernel counts the whole machine, or if its cgroup is not visible here.
using CgroupLevels = std::vector<std::string>;

struct CgroupPaths {
  CgroupLevels unified;                        // v2
  std::map<std::string, CgroupLevels> legacy;  // v1, by controller: "memory", "cpu", "cpuacct", "blkio"

  [[nodiscard]] const CgroupLevels& Of(const std::string& controller) const {
    static const CgroupLevels kNone;
    const auto found = legacy.find(controller);
    return found == legacy.end() ? kNone : found->second;
  }
  [[nodiscard]] bool empty() const { return unified.empty() && legacy.empty(); }
  friend bool operator==(const CgroupPaths&, const CgroupPaths&) = default;
};

// `process`: a pid, or "self".
CgroupPaths FindCgroup(KernelFiles& files, std::string_view process);

}  // namespace persia::agent
