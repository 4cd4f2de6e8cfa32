#include "vitals/memory_cgroup.h"

#include "files/kernel_text.h"

namespace persia::agent {
namespace {

// Version 1 has a number near 2^63 for no limit.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

// A directory without the usual mount point.
std::string NameOf(std::string_view directory, bool is_version_1) {
  for (const std::string_view mount : {std::string_view("/sys/fs/cgroup"), std::string_view("/memory")}) {
    if (directory.starts_with(mount)) directory.remove_prefix(mount.size());
    if (!is_version_1) break;
  }
  return std::string(directory);
}

}  // namespace

const CgroupLevels& MemoryCgroups::Of(std::string_view who) {
  std::string text(files_.Read("/proc/" + std::string(who) + "/cgroup"));
  const auto [found, is_new] = known_.try_emplace(std::move(text));
  CgroupLevels& levels = found->second;
  if (!is_new) return levels;
  const CgroupPaths paths = FindCgroup(files_, who);
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
    if (const auto kills = NumberOf(files_.Read(cgroup + file), "oom_kill")) return kills;
  return std::nullopt;
}

std::optional<uint64_t> MemoryCgroups::KillsOfHost() { return NumberOf(files_.Read("/proc/vmstat"), "oom_kill"); }

std::optional<MemoryCgroups::Limit> MemoryCgroups::LimitOf(const CgroupLevels& levels) {
  std::optional<Limit> lowest;
  for (const std::string& level : levels) {
    std::string_view text = files_.Read(level + "/memory.max");
    const bool is_version_1 = text.empty();
    if (is_version_1) text = files_.Read(level + "/memory.limit_in_bytes");
    const auto bytes = LeadingNumber(text);
    if (bytes && *bytes < kNoLimit && (!lowest || *bytes < lowest->bytes))
      lowest = {.bytes = *bytes, .cgroup = NameOf(level, is_version_1)};
  }
  return lowest;
}

}  // namespace persia::agent
