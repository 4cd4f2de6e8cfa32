// The memory cgroup of a process: its limit, and how often the kernel has killed a process of it for lack of memory.
//
//   MemoryCgroups cgroups;
//   std::string cgroup = cgroups.Of("4711");       // "/sys/fs/cgroup/job", empty: none that this process sees
//   cgroups.Kills(cgroup)                           // none: not known
//
// Both versions of cgroups: memory.events.local of version 2, memory.oom_control of version 1. Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "files/proc_reader.h"

namespace persia::agent {

class MemoryCgroups {
 public:
  struct Roots {
    std::string proc = "/proc";
    std::string cgroups = "/sys/fs/cgroup";
  };
  explicit MemoryCgroups(Roots roots);

  // The directory of the memory cgroup of a process, by its pid or "self".
  [[nodiscard]] std::string Of(std::string_view who);
  // Processes of this cgroup that the kernel killed for lack of memory, without those of its children in version 2.
  [[nodiscard]] std::optional<uint64_t> Kills(const std::string& cgroup);
  // Of the whole host.
  [[nodiscard]] std::optional<uint64_t> KillsOfHost();
  // The lowest limit of the cgroup and those above it, with the cgroup that has it, as its path below the mount.
  struct Limit {
    uint64_t bytes = 0;
    std::string cgroup;
  };
  [[nodiscard]] std::optional<Limit> LimitOf(const std::string& cgroup);

 private:
  std::string_view ReadIn(const std::string& cgroup, std::string_view file);

  const Roots roots_;
  ProcReader proc_;
  ProcReader files_;
};

}  // namespace persia::agent
