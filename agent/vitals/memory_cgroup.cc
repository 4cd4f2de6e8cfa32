#include "vitals/memory_cgroup.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "files/kernel_text.h"

namespace persia::agent {
namespace {

// Version 1 has a number near 2^63 for no limit.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

// Whether a line of /proc/<pid>/cgroup is of the hierarchy with this controller; "": of version 2.
bool IsOf(const CgroupLine& line, std::string_view controller) {
  return controller.empty() ? line.controllers.empty() : HasWord(line.controllers, controller);
}

}  // namespace

MemoryCgroups::MemoryCgroups(Roots roots) : roots_(std::move(roots)), proc_(roots_.proc), files_(roots_.cgroups) {}

// `cgroup` begins with the mount's directory.
std::string_view MemoryCgroups::ReadIn(const std::string& cgroup, std::string_view file) {
  const std::string below = cgroup.substr(std::min(cgroup.size(), roots_.cgroups.size()));
  return files_.Read(below.empty() ? "." : below, file);
}

std::string MemoryCgroups::Of(std::string_view who) {
  const std::string text(proc_.Read(who, "/cgroup"));
  for (const std::string_view controller : {std::string_view("memory"), std::string_view()}) {
    for (std::string_view rest = text; !rest.empty();) {
      const auto line = ParseCgroupLine(NextLine(rest));
      if (!line || !IsOf(*line, controller)) continue;
      // A path that leads out of the agent's own cgroup namespace cannot be seen here.
      if (line->path.starts_with("/..")) return "";
      const std::string root = roots_.cgroups + (controller.empty() ? "" : "/memory");
      std::string cgroup = root + (line->path == "/" ? "" : std::string(line->path));
      if (access(cgroup.c_str(), F_OK) == 0) return cgroup;
      // In a container the mount may be the container's own cgroup, while /proc names it as the host does.
      return access(root.c_str(), F_OK) == 0 ? root : "";
    }
  }
  return "";
}

std::optional<uint64_t> MemoryCgroups::Kills(const std::string& cgroup) {
  if (cgroup.empty()) return std::nullopt;
  for (const std::string_view file : {"/memory.events.local", "/memory.events", "/memory.oom_control"}) {
    if (const auto kills = NumberOf(ReadIn(cgroup, file), "oom_kill")) return kills;
  }
  return std::nullopt;
}

std::optional<uint64_t> MemoryCgroups::KillsOfHost() { return NumberOf(proc_.Read("vmstat"), "oom_kill"); }

std::optional<MemoryCgroups::Limit> MemoryCgroups::LimitOf(const std::string& cgroup) {
  std::optional<Limit> lowest;
  for (std::string at = cgroup; at.size() > roots_.cgroups.size(); at.resize(at.rfind('/'))) {
    std::string_view text = ReadIn(at, "/memory.max");
    if (text.empty()) text = ReadIn(at, "/memory.limit_in_bytes");
    const auto bytes = LeadingNumber(text);
    if (bytes && *bytes < kNoLimit && (!lowest || *bytes < lowest->bytes)) {
      lowest = {.bytes = *bytes, .cgroup = at.substr(roots_.cgroups.size())};
    }
  }
  return lowest;
}

}  // namespace persia::agent
