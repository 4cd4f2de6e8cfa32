// Filesystems in memory that are full: a process that writes to a mapped file of one gets SIGBUS.
//
// Only tmpfs is examined, since statvfs of a network filesystem may block. Thread safety: none.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "files/proc_reader.h"

namespace persia::agent {

class FullFilesystems {
 public:
  // `free_ratio`: of a mount point, from 0 to 1; negative: not known.
  explicit FullFilesystems(std::string proc = "/proc", std::function<double(const std::string&)> free_ratio = FreeRatio);

  // Their mount points.
  [[nodiscard]] std::vector<std::string> Find();

  [[nodiscard]] static double FreeRatio(const std::string& mount_point);

 private:
  ProcReader proc_;
  std::function<double(const std::string&)> free_ratio_;
};

}  // namespace persia::agent
