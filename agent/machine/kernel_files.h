// Reads files of the kernel (/proc, /sys, cgroups) below a root. files/kernel_text.h parses their text.
//
//   KernelFiles files("");                                  // "": the machine itself
//   if (const auto bytes = files.Number("/sys/fs/cgroup/memory.current")) ...
//
// A file that is missing or cannot be read is empty: each kernel has other files.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {

class KernelFiles {
 public:
  explicit KernelFiles(std::string root) : root_(std::move(root)) {}

  // The whole file, at most 4 MiB of it. Valid until the next call of Read or Number.
  std::string_view Read(std::string_view path);
  // The number that the file begins with; none if it does not, as "max".
  std::optional<uint64_t> Number(std::string_view path);
  // The names in a directory, sorted.
  [[nodiscard]] std::vector<std::string> List(std::string_view path) const;
  [[nodiscard]] bool Exists(std::string_view path) const;
  // The target of a symbolic link; empty if there is none.
  [[nodiscard]] std::string Link(std::string_view path) const;
  // Distinguishes namespaces: of /proc/<pid>/ns/<kind>.
  [[nodiscard]] std::optional<uint64_t> Inode(std::string_view path) const;
  // As the system calls need it.
  [[nodiscard]] std::string PathOf(std::string_view path) const { return root_ + std::string(path); }

 private:
  const std::string root_;
  std::string buffer_;
};

// Where the files of a process's cgroup are: cgroup v2, v1, or both, as this mount namespace shows them.
//
// Thread safety: a pure function of the files.

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
