// Reads files of the kernel (/proc, /sys, cgroups) below a root. kernel_text.h parses their text.
//
//   KernelFiles files("");                                  // "": the machine itself
//   if (const auto bytes = files.Number("/sys/fs/cgroup/memory.current")) ...
//
// A path is given in one or two parts, so that the file of a process needs no text of its own: buffers are kept between calls,
// and reading allocates nothing. A file that is missing or cannot be read is empty: each kernel has other files. Thread safety:
// none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {

class KernelFiles {
 public:
  explicit KernelFiles(std::string root) : root_(std::move(root)) {}

  // The whole file, at most 16 MiB of it. Valid until the next call of Read or Number.
  std::string_view Read(std::string_view path, std::string_view more = "");
  // The number that the file begins with; none if it does not, as "max".
  std::optional<uint64_t> Number(std::string_view path);
  // The names in a directory, sorted.
  std::vector<std::string> List(std::string_view path, std::string_view more = "");
  bool Exists(std::string_view path);
  // The target of a symbolic link, which is not followed; empty if there is none.
  std::string Link(std::string_view path, std::string_view more = "");
  // Distinguishes namespaces: of /proc/<pid>/ns/<kind>.
  std::optional<uint64_t> Inode(std::string_view path, std::string_view more = "");
  // As the system calls need it. Valid until the next call of any method.
  const std::string& PathOf(std::string_view path, std::string_view more = "");

 private:
  const std::string root_;
  std::string path_;
  std::string buffer_;
};

}  // namespace persia::agent
