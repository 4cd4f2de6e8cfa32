// The last lines of the file that is a process's stderr, read after its end.
//
//   std::optional<StderrFile> file = StderrFile::Of(proc, "4711");        // while it lives
//   std::vector<std::string> lines = file->LastLines(20);                 // waits for the file's filesystem
//
// Only a regular file is read, never a pipe or a terminal: the agent puts nothing between the process and its stderr. Several
// processes may share the file. Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel/proc_reader.h"

namespace persia::agent {

class StderrFile {
 public:
  static constexpr size_t kMaxBytes = 16 << 10;  // of the file's end that are read
  static constexpr size_t kMaxLineBytes = 300;   // of a line that are returned

  // None: it is no file, or cannot be seen. Reads /proc alone, so that a filesystem that hangs is not waited for.
  static std::optional<StderrFile> Of(ProcReader& proc, const std::string& pid);

  // The oldest first. Empty: the file is gone or replaced, or may not be read.
  [[nodiscard]] std::vector<std::string> LastLines(size_t count) const;

 private:
  std::string path_;
  std::optional<uint64_t> inode_;  // none: the kernel does not tell it (Linux before 5.14)
};

}  // namespace persia::agent
