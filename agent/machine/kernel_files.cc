#include "machine/kernel_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <optional>
#include <utility>

#include "base/owned_fd.h"
#include "files/kernel_text.h"

namespace persia::agent {
namespace {

constexpr size_t kFirstBytes = 16 << 10;
constexpr size_t kMaxBytes = 4 << 20;

struct Mount {
  std::string root;
  std::string point;
  std::string controllers;  // of v1: its mount options; empty: v2
};

std::vector<Mount> CgroupMounts(KernelFiles& files) {
  std::vector<Mount> mounts;
  std::string_view text = files.Read("/proc/self/mountinfo");
  while (!text.empty()) {
    std::string_view line = NextLine(text);
    const size_t dash = line.find(" - cgroup");
    if (dash == std::string_view::npos) continue;
    std::string_view type_on = line.substr(dash + 3);
    for (int word = 0; word < 3; ++word) NextWord(line);
    const std::string root = UnescapedPath(NextWord(line));
    const std::string point = UnescapedPath(NextWord(line));
    const std::string_view type = NextWord(type_on);
    NextWord(type_on);
    const std::string_view options = NextWord(type_on);
    if (type == "cgroup2") mounts.push_back({root, point, ""});
    if (type == "cgroup" && !options.empty()) mounts.push_back({root, point, std::string(options)});
  }
  return mounts;
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

CgroupLevels LevelsOf(const KernelFiles& files, const std::vector<Mount>& mounts, std::string_view controller,
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

std::string_view KernelFiles::Read(std::string_view path) {
  // A path that is no file of the kernel, such as a pipe of a test, must not block.
  const OwnedFd file(open(PathOf(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return {};
  size_t size = 0;
  for (;;) {
    if (size == buffer_.size()) {
      if (size >= kMaxBytes) break;
      buffer_.resize(std::max(kFirstBytes, 2 * size));
    }
    const ssize_t got = read(file.get(), buffer_.data() + size, buffer_.size() - size);
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  return {buffer_.data(), size};
}

std::optional<uint64_t> KernelFiles::Number(std::string_view path) { return LeadingNumber(Read(path)); }

std::vector<std::string> KernelFiles::List(std::string_view path) const {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(PathOf(path).c_str()), closedir);
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory.get()))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

bool KernelFiles::Exists(std::string_view path) const { return access(PathOf(path).c_str(), F_OK) == 0; }

std::string KernelFiles::Link(std::string_view path) const {
  char target[PATH_MAX];
  const ssize_t size = readlink(PathOf(path).c_str(), target, sizeof target);
  return size > 0 && size < static_cast<ssize_t>(sizeof target) ? std::string(target, static_cast<size_t>(size)) : "";
}

std::optional<uint64_t> KernelFiles::Inode(std::string_view path) const {
  struct stat info {};
  return stat(PathOf(path).c_str(), &info) == 0 ? std::optional<uint64_t>(info.st_ino) : std::nullopt;
}

// /proc/<pid>/cgroup has a line for each hierarchy (CgroupLine).
// /proc/self/mountinfo has a line for each mount: "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory": the fourth
// word is the directory of the filesystem that is mounted, the fifth where; after " - " stand type, source and options.

CgroupPaths FindCgroup(KernelFiles& files, std::string_view process) {
  CgroupPaths paths;
  const std::string text(files.Read("/proc/" + std::string(process) + "/cgroup"));
  if (text.empty()) return paths;
  const std::vector<Mount> mounts = CgroupMounts(files);
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto line = ParseCgroupLine(NextLine(rest));
    if (!line) continue;
    if (line->controllers.empty()) paths.unified = LevelsOf(files, mounts, "", line->path);
    for (const char* controller : {"memory", "cpu", "cpuacct", "blkio"}) {
      if (!HasWord(line->controllers, controller)) continue;
      CgroupLevels levels = LevelsOf(files, mounts, controller, line->path);
      if (!levels.empty()) paths.legacy[controller] = std::move(levels);
    }
  }
  return paths;
}

}  // namespace persia::agent
