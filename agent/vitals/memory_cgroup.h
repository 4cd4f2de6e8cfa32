// The memory cgroup of a process: its limit, and how often the kernel has killed a process of it for lack of memory.
//
//   MemoryCgroups cgroups("");
//   CgroupLevels levels = cgroups.Of("4711");       // {"/sys/fs/cgroup/job"}, empty: none that this process sees
//   cgroups.Kills(levels.front())                   // none: not known
//
// Both versions of cgroups: memory.events.local of version 2, memory.oom_control of version 1. Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "machine/kernel_files.h"

namespace persia::agent {

class MemoryCgroups {
 public:
  // `root`: of /proc, and of the mounts that it names; "": the machine itself.
  explicit MemoryCgroups(std::string root) : files_(std::move(root)) {}

  // The directories of the memory cgroup of a process, by its pid or "self", from the one in which the kernel counts its kills
  // to the topmost one. Empty if its cgroup is not visible here.
  [[nodiscard]] const CgroupLevels& Of(std::string_view who);
  // What is mounted, and what was found of cgroups, may have changed.
  void Forget() { known_.clear(); }
  // Processes of this cgroup that the kernel killed for lack of memory, without those of its children.
  [[nodiscard]] std::optional<uint64_t> Kills(const std::string& cgroup);
  // Of the whole host.
  [[nodiscard]] std::optional<uint64_t> KillsOfHost();
  // The lowest limit of the levels, with the cgroup that has it, as its path below the mount: empty for the topmost one of a
  // container.
  struct Limit {
    uint64_t bytes = 0;
    std::string cgroup;
  };
  [[nodiscard]] std::optional<Limit> LimitOf(const CgroupLevels& levels);

 private:
  KernelFiles files_;
  std::map<std::string, CgroupLevels, std::less<>> known_;  // by the text of /proc/<pid>/cgroup
};

}  // namespace persia::agent
