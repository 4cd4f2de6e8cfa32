#include "vitals/memory_cgroup.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace persia::agent {
namespace {

// Version 1 has a number near 2^63 for no limit.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

std::optional<uint64_t> Number(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// The path of a line of /proc/<pid>/cgroup, "4:cpu,memory:/job" or "0::/job"; none: it is of another hierarchy.
std::optional<std::string_view> PathIn(std::string_view line, std::string_view controller) {
  const size_t first = line.find(':');
  const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const std::string_view controllers = line.substr(first + 1, second - first - 1);
  const bool is_unified = controller.empty() && line.starts_with("0::");
  bool is_there = is_unified;
  for (size_t at = 0; !controller.empty() && !is_there && at <= controllers.size();) {
    const size_t end = std::min(controllers.find(',', at), controllers.size());
    is_there = controllers.substr(at, end - at) == controller;
    at = end + 1;
  }
  return is_there ? std::optional(line.substr(second + 1)) : std::nullopt;
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
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const auto path = PathIn(std::string_view(text).substr(at, end - at), controller);
      at = end + 1;
      if (!path) continue;
      // A path that leads out of the agent's own cgroup namespace cannot be seen here.
      if (path->starts_with("/..")) return "";
      std::string cgroup = roots_.cgroups + (controller.empty() ? "" : "/memory") + (*path == "/" ? "" : std::string(*path));
      if (access(cgroup.c_str(), F_OK) == 0) return cgroup;
      // In a container the mount may be the container's own cgroup, while /proc names it as the host does.
      cgroup = roots_.cgroups + (controller.empty() ? "" : "/memory");
      return access(cgroup.c_str(), F_OK) == 0 ? cgroup : "";
    }
  }
  return "";
}

std::optional<uint64_t> MemoryCgroups::Kills(const std::string& cgroup) {
  if (cgroup.empty()) return std::nullopt;
  for (const std::string_view file : {"/memory.events.local", "/memory.events", "/memory.oom_control"}) {
    const std::string_view text = ReadIn(cgroup, file);
    if (const std::string_view line = ProcLine(text, "oom_kill "); !line.empty()) return Number(line);
  }
  return std::nullopt;
}

std::optional<uint64_t> MemoryCgroups::KillsOfHost() { return Number(ProcLine(proc_.Read("vmstat"), "oom_kill ")); }

std::optional<MemoryCgroups::Limit> MemoryCgroups::LimitOf(const std::string& cgroup) {
  std::optional<Limit> lowest;
  for (std::string at = cgroup; at.size() > roots_.cgroups.size(); at.resize(at.rfind('/'))) {
    std::string_view text = ReadIn(at, "/memory.max");
    if (text.empty()) text = ReadIn(at, "/memory.limit_in_bytes");
    const auto bytes = Number(text);
    if (bytes && *bytes < kNoLimit && (!lowest || *bytes < lowest->bytes)) {
      lowest = {.bytes = *bytes, .cgroup = at.substr(roots_.cgroups.size())};
    }
  }
  return lowest;
}

}  // namespace persia::agent
