// The stacks of a process's threads, which it writes to a file beside its segment when it crashes, and when the agent asks.
//
//   StackFiles files(directory);
//   if (files.Ask(pid, start_ticks)) ...         // it writes them soon
//   std::string text = files.Read(pid, start_ticks);
//   files.Remove(pid, start_ticks);              // after its end
//
// A process opts in by PERSIA_METRICS_STACKS=1 (lib/python/persia_metrics/stacks.py). Its file is `<pid>-<start ticks>.stacks`,
// and begins with the line `persia-metrics stacks 1 signal N`. The agent sends signal N only to a process that has such a file
// of the agent's user and catches N, and that has this start time, so that no other process receives it. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "files/proc_reader.h"

namespace persia::agent {

class StackFiles {
 public:
  static constexpr size_t kMaxBytes = 4096;  // that Read returns; the first ones are of the thread that crashed

  explicit StackFiles(std::string directory);

  // Whether the signal was sent. REQUIRES: the pid is of the agent's own namespace.
  bool Ask(uint32_t pid, uint64_t start_ticks);
  // What it wrote last, as lines of text; empty: nothing.
  [[nodiscard]] std::string Read(uint32_t pid, uint64_t start_ticks);
  void Remove(uint32_t pid, uint64_t start_ticks);

 private:
  [[nodiscard]] std::string NameOf(uint32_t pid, uint64_t start_ticks) const;
  // The file's content; empty: there is none that may be read.
  [[nodiscard]] std::string Content(uint32_t pid, uint64_t start_ticks) const;

  const std::string directory_;
  ProcReader proc_;
};

}  // namespace persia::agent
