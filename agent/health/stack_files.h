// The stacks of a process's threads, which it writes to a file beside its segment when it crashes, and when the agent asks.
//
//   StackFiles files(directory);
//   if (files.Ask(process)) ...                  // it writes them soon
//   std::string text = files.Read(process);
//   files.Remove(process);                       // after its end
//   files.RemoveOrphans();                       // now and then
//
// A process appends to its file. The agent empties it before it asks, so that the file has the newest stacks alone.
//
// A process opts in by PERSIA_METRICS_STACKS=1 (lib/python/persia_metrics/stacks.py). Its file is `<pid>-<start ticks>.stacks`,
// and begins with the line `persia-metrics stacks 1 signal N`. The agent sends signal N only to a process that has such a file
// of the agent's user and catches N, and that has this start time, so that no other process receives it. Thread safety: none.
#pragma once

#include <cstddef>
#include <string>

#include "base/owned_fd.h"
#include "kernel/proc_reader.h"
#include "model/process_id.h"

namespace persia::agent {

class StackFiles {
 public:
  static constexpr size_t kMaxBytes = 4096;  // about as many does Read return

  explicit StackFiles(std::string directory);

  // Whether the signal was sent. REQUIRES: the pid is of the agent's own namespace.
  bool Ask(const ProcessId& process);
  // What it has written when it crashed, else since it was last asked, as lines of text; empty: nothing. Of long stacks, the
  // line "..." stands for what is left out. The thread that was current (of a crash: that crashed) and the main thread, which
  // Python writes last, are kept first.
  [[nodiscard]] std::string Read(const ProcessId& process);
  // Not if the process lives: then it has executed another program, which has a file of this name.
  void Remove(const ProcessId& process);
  // Removes the files of processes that have ended and have no segment, such as children of `multiprocessing` without metrics:
  // nothing else tells of their end. REQUIRES: the pids are of the agent's own namespace.
  void RemoveOrphans();

 private:
  [[nodiscard]] bool Lives(const ProcessId& process);
  [[nodiscard]] std::string NameOf(const ProcessId& process) const;
  // The file, open; not valid: there is none that may be used.
  [[nodiscard]] OwnedFd Open(const ProcessId& process, int flags) const;

  const std::string directory_;
  ProcReader proc_;
};

}  // namespace persia::agent
