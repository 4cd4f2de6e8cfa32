// The cgroup of a process, of version 2, version 1, or both, as this mount namespace shows it.
//
//   const CgroupPaths paths = FindCgroup(files, files.Read("/proc/4711/cgroup"));
//   if (const auto limit = LowestMemoryLimit(files, paths.unified)) ...
//
//   MemoryCgroups cgroups("");
//   CgroupLevels levels = cgroups.Of("4711");       // {"/sys/fs/cgroup/job"}, empty: none that this process sees
//   cgroups.Kills(levels.front())                   // none: not known
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/kernel_files.h"

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

// `membership`: the text of /proc/<pid>/cgroup.
CgroupPaths FindCgroup(KernelFiles& files, std::string_view membership);

struct MemoryLimit {
  uint64_t bytes = 0;
  std::string level;
};
// A cgroup has the limits of those above it, too.
std::optional<MemoryLimit> LowestMemoryLimit(KernelFiles& files, const CgroupLevels& levels);

// The memory cgroups of processes, and how often the kernel has killed a process of one for lack of memory.
class MemoryCgroups {
 public:
  // `root`: of /proc, and of the mounts that it names; "": the machine itself.
  explicit MemoryCgroups(std::string root) : files_(std::move(root)) {}

  // The directories of the memory cgroup of a process, by its pid or "self", from the one in which the kernel counts its kills
  // to the topmost one. Empty if its cgroup is not visible here.
  const CgroupLevels& Of(std::string_view who);
  // What is mounted, and what was found of cgroups, may have changed.
  void Forget() { known_.clear(); }
  // Processes of this cgroup that the kernel killed for lack of memory, without those of its children.
  std::optional<uint64_t> Kills(const std::string& cgroup);
  // Of the whole host.
  std::optional<uint64_t> KillsOfHost();
  // The level is its path below the mount: empty for the topmost one of a container.
  std::optional<MemoryLimit> LimitOf(const CgroupLevels& levels);

 private:
  KernelFiles files_;
  std::map<std::string, CgroupLevels, std::less<>> known_;  // by the text of /proc/<pid>/cgroup
};

}  // namespace persia::agent
