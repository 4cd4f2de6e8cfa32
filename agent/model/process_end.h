// The end of one process of the job. It is reported once, from the segment of the process and not from the list of processes,
// so that a process which lived only between two collections is reported, too.
//
// Thread safety: plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/job_event.h"
#include "model/snapshot.h"

namespace persia::agent {

// The last exception of Python that was given to sys.excepthook (lib/python/persia_metrics/uncaught.py).
struct UncaughtException {
  std::string type = {};     // "ValueError"
  std::string message = {};  // its first line with a letter
  std::string where = {};    // "train.py:42 in load"; empty: not known
  std::string phase = {};    // the first phase that it left; empty: none
  int error_number = 0;      // of an OSError; ENOMEM of a MemoryError; else 0
  // The process went on: the program itself called the hook, with an exception that it had caught, or the prompt of Python did.
  bool was_caught = false;
  std::chrono::system_clock::time_point raised_at = {};  // it is not saved

  friend bool operator==(const UncaughtException&, const UncaughtException&) = default;
};

// What the agent knew of a process shortly before its end. All are optional: a process that lived shorter than a push interval,
// or in another container, leaves less.
struct Circumstances {
  using Bytes = std::optional<uint64_t>;

  // The kernel counts its kills for lack of memory, and has counted one that no other process has taken.
  bool killed_for_memory = false;
  // Whether the kernel's counts were read before and after the end. If they were, and count no kill, SIGKILL came from
  // elsewhere.
  bool kills_are_known = false;
  // The cgroup whose limit was reached; empty: the host's memory, or not known.
  std::string memory_cgroup = {};
  Bytes memory_limit = {};     // of that cgroup, or of the process's own
  Bytes resident = {};         // in the last collection before the end
  Bytes resident_before = {};  // in the oldest one of the minute before that
  std::optional<int> oom_score = {};
  // Filesystems in memory that were full.
  std::vector<std::string> full_filesystems = {};
  std::optional<uint64_t> open_files = {};
  std::optional<uint64_t> max_open_files = {};
  Bytes max_file_bytes = {};
  std::optional<uint64_t> cpu_seconds = {};
  std::optional<uint64_t> max_cpu_seconds = {};
  Bytes max_address_space = {};
  // Of its stderr, the oldest first.
  std::vector<std::string> stderr_lines = {};
  // Stacks of all threads, which the process wrote when it crashed or hung; shortened.
  std::string stacks = {};

  friend bool operator==(const Circumstances&, const Circumstances&) = default;
};

struct ProcessEnd {
  using TimePoint = std::chrono::system_clock::time_point;

  std::string segment_id = {};
  Identity identity = {};
  uint32_t ordinal = 0;
  uint32_t pid = 0;
  uint64_t pid_namespace = 0;
  uint64_t start_ticks = 0;
  std::string exit = {};   // model/exit_reason.h; empty: not known yet
  std::string phase = {};  // in which it ended; empty: it marked none
  std::optional<double> step = {};
  TimePoint birth = {};     // when it began to record
  TimePoint ended_at = {};  // when the collector found it ended
  // Its last event, or the last start or stop of its clocks, if that was after the collection before. It is not saved.
  std::optional<TimePoint> last_sign = {};
  std::optional<std::chrono::seconds> hung_for = {};  // it, or its job, hung until then; none: it did not
  std::optional<UncaughtException> exception = {};
  std::vector<std::string> last_events = {};  // "checkpoint.saved {...}", the oldest first
  Circumstances about = {};

  friend bool operator==(const ProcessEnd&, const ProcessEnd&) = default;
};

}  // namespace persia::agent
