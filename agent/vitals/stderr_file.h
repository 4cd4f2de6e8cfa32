// The last lines of the file that is a process's stderr, read after its end.
//
//   std::optional<StderrFile> file = StderrFile::Of("/proc", "4711");     // while it lives
//   std::vector<std::string> lines = file->LastLines(20);
//
// Only a regular file is read, never a pipe or a terminal: the agent puts nothing between the process and its stderr. Several
// processes may share the file. Thread safety: a value.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace persia::agent {

class StderrFile {
 public:
  static constexpr size_t kMaxBytes = 16 << 10;  // of the file's end that are read
  static constexpr size_t kMaxLineBytes = 300;   // of a line that are returned

  // None: it is not a regular file, or cannot be seen.
  static std::optional<StderrFile> Of(const std::string& proc, const std::string& pid);

  // The oldest first. Empty: the file is gone or replaced, or may not be read.
  [[nodiscard]] std::vector<std::string> LastLines(size_t count) const;

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace persia::agent
