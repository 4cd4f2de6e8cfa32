// /proc/<pid>/cgroup has a line for each hierarchy: "4:cpu,memory:/job" of version 1, "0::/job" of version 2.
// Without a limit, memory.max of version 2 is "max"; memory.limit_in_bytes of version 1 is a number near 2^63.
#include "kernel/cgroups.h"

#include <algorithm>

#include "kernel/kernel_text.h"

namespace persia::agent {
namespace {

constexpr uint64_t kNoLimit = uint64_t{1} << 60;

struct Mount {
  std::string root;
  std::string point;
  std::string controllers;  // of v1: its mount options; empty: v2
};

std::vector<Mount> CgroupMounts(KernelFiles& files) {
  std::vector<Mount> mounts;
  std::string_view text = files.Read("/proc/self/mountinfo");
  while (!text.empty()) {
    const auto mount = ParseMountLine(NextLine(text));
    if (mount && mount->type == "cgroup2") mounts.push_back({mount->root, mount->point, ""});
    if (mount && mount->type == "cgroup" && !mount->options.empty())
      mounts.push_back({mount->root, mount->point, std::string(mount->options)});
  }
  return mounts;
}

// Whether `word` is in a list that commas separate.
bool HasWord(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::string_view first = list.substr(0, list.find(','));
    if (first == word) return true;
    list.remove_prefix(std::min(first.size() + 1, list.size()));
  }
  return false;
}

// `path` as a path below the mount's root; none if it is not.
std::optional<std::string> BelowRoot(const Mount& mount, std::string_view path) {
  // "/..": a process outside of the agent's cgroup namespace.
  if (!path.starts_with('/') || path.starts_with("/..")) return std::nullopt;
  if (mount.root != "/") {
    if (!path.starts_with(mount.root)) return std::nullopt;
    path.remove_prefix(mount.root.size());
    if (!path.empty() && path[0] != '/') return std::nullopt;
  }
  return std::string(path == "/" ? std::string_view() : path);
}

CgroupLevels LevelsOf(KernelFiles& files, const std::vector<Mount>& mounts, std::string_view controller,
                      std::string_view path) {
  for (const Mount& mount : mounts) {
    const bool fits = controller.empty() ? mount.controllers.empty() : HasWord(mount.controllers, controller);
    std::optional<std::string> below = fits ? BelowRoot(mount, path) : std::nullopt;
    if (!below) continue;
    const std::string own = mount.point + *below;
    if (!files.Exists(own + "/cgroup.procs")) continue;  // another mount may show it
    CgroupLevels levels;
    for (;;) {
      const std::string directory = mount.point + *below;
      // Only the root of a hierarchy has `release_agent` (v1), or lacks `cgroup.type` (v2).
      const bool is_root = below->empty() && (controller.empty() ? !files.Exists(directory + "/cgroup.type")
                                                                 : files.Exists(directory + "/release_agent"));
      if (!is_root && files.Exists(directory + "/cgroup.procs")) levels.push_back(directory);
      if (below->empty()) return levels;
      below->resize(below->rfind('/'));
    }
  }
  return {};
}

}  // namespace

CgroupPaths FindCgroup(KernelFiles& files, std::string_view membership) {
  CgroupPaths paths;
  const std::string text(membership);  // which may be in the buffer of `files`
  if (membership.empty()) return paths;
  const std::vector<Mount> mounts = CgroupMounts(files);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = NextLine(rest);
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (controllers.empty()) paths.unified = LevelsOf(files, mounts, "", path);
    for (const char* controller : {"memory", "cpu", "cpuacct", "blkio"}) {
      if (!HasWord(controllers, controller)) continue;
      CgroupLevels levels = LevelsOf(files, mounts, controller, path);
      if (!levels.empty()) paths.legacy[controller] = std::move(levels);
    }
  }
  return paths;
}

std::optional<MemoryLimit> LowestMemoryLimit(KernelFiles& files, const CgroupLevels& levels) {
  std::optional<MemoryLimit> lowest;
  for (const std::string& level : levels) {
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
      const auto bytes = files.Number(level + file);
      if (bytes && *bytes < kNoLimit && (!lowest || *bytes < lowest->bytes)) lowest = {.bytes = *bytes, .level = level};
    }
  }
  return lowest;
}

const CgroupLevels& MemoryCgroups::Of(std::string_view who) {
  const auto [found, is_new] = known_.try_emplace(std::string(files_.Read("/proc/" + std::string(who), "/cgroup")));
  CgroupLevels& levels = found->second;
  if (!is_new) return levels;
  const CgroupPaths paths = FindCgroup(files_, found->first);
  levels = paths.Of("memory");
  if (!levels.empty()) return levels;
  // In version 2, a cgroup without the controller `memory` counts in the one above it.
  levels = paths.unified;
  while (!levels.empty() && !Kills(levels.front())) levels.erase(levels.begin());
  return levels;
}

std::optional<uint64_t> MemoryCgroups::Kills(const std::string& cgroup) {
  if (cgroup.empty()) return std::nullopt;
  for (const char* file : {"/memory.events.local", "/memory.events", "/memory.oom_control"})
    if (const auto kills = NumberOf(files_.Read(cgroup, file), "oom_kill")) return kills;
  return std::nullopt;
}

std::optional<uint64_t> MemoryCgroups::KillsOfHost() { return NumberOf(files_.Read("/proc/vmstat"), "oom_kill"); }

std::optional<MemoryLimit> MemoryCgroups::LimitOf(const CgroupLevels& levels) {
  std::optional<MemoryLimit> lowest = LowestMemoryLimit(files_, levels);
  if (!lowest) return lowest;
  // Without the usual mount point.
  const bool is_version_1 = files_.Exists(lowest->level + "/memory.limit_in_bytes");
  for (const std::string_view mount : {"/sys/fs/cgroup", "/memory"}) {
    if (lowest->level.starts_with(mount)) lowest->level.erase(0, mount.size());
    if (!is_version_1) break;
  }
  return lowest;
}

}  // namespace persia::agent
