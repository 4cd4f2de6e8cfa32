// One process of the job: `workers` makes its record from the segment and the state, `health` judges it, and metrics, page and
// state show it as it is.
//
// Thread safety: plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/process_id.h"
#include "model/snapshot.h"

namespace persia::agent {

// The role of a launcher, such as torchrun: it starts the ranks, and is none.
inline constexpr std::string_view kLauncherRole = "launcher";

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

enum class DeathCause {
  kOutOfMemory,     // the kernel killed it for lack of memory, or an allocation failed
  kGpuOutOfMemory,  // an allocation on the GPU failed
  kDiskFull,        // SIGBUS while a filesystem in memory was full, or ENOSPC
  kLimit,           // of processor time, file size or open files
  kCrash,           // SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGSYS, SIGTRAP
  kException,       // of Python, which nothing caught
  kExitCode,        // another exit code than 0
  kHang,            // it hung, and was then ended by a signal
  kKilled,          // SIGKILL from elsewhere
  kLauncher,        // SIGTERM or SIGINT, without one to the job: its launcher ended it, or a person
  kSignal,          // another signal
  kUnknown,         // a signal or _exit; it is not known which
};
inline constexpr size_t kDeathCauses = static_cast<size_t>(DeathCause::kUnknown) + 1;

// Why it died (health/deaths.h).
struct Death {
  DeathCause cause = DeathCause::kUnknown;
  std::string what = {};     // "killed by the kernel for lack of memory (...)"
  std::string look_at = {};  // what to look at; a sentence

  friend bool operator==(const Death&, const Death&) = default;
};

struct ProcessEnd {
  using TimePoint = std::chrono::system_clock::time_point;

  std::string exit = {};  // model/ends.h; empty: not known yet
  TimePoint at = {};      // when the collector found it ended; of a death, the last sign of its life, if it left one
  // Its last event, or the last start or stop of its clocks, if that was after the collection before. It is not saved.
  std::optional<TimePoint> last_sign = {};
  std::optional<std::chrono::seconds> hung_for = {};  // it, or its job, hung until then; none: it did not
  std::string awaited = {};  // the rank that the others waited for in that hang; empty: not known. It is not saved
  std::optional<UncaughtException> exception = {};
  std::vector<std::string> last_events = {};  // "checkpoint.saved {...}", the oldest first
  Circumstances about = {};
  std::optional<Death> death = {};  // none: it left without an error, or as the job was asked to, or that is not known yet

  friend bool operator==(const ProcessEnd&, const ProcessEnd&) = default;
};

// What the kernel tells of a running process; none: it does not.
struct ProcessUsage {
  using Number = std::optional<double>;

  Number cpu_seconds = {};
  Number disk_wait_seconds = {};
  Number run_queue_wait_seconds = {};
  Number major_faults = {};
  Number minor_faults = {};
  Number open_fds = {};
  Number threads = {};
  Number read_bytes = {};
  Number written_bytes = {};
  Number resident_bytes = {};
  Number virtual_bytes = {};
  Number start_time = {};  // in seconds since 1970

  friend bool operator==(const ProcessUsage&, const ProcessUsage&) = default;
};

// Whether a process hangs (health/hang_judge.h).
enum class HangVerdict { kEnded, kNotJudged, kRuns, kHung };

struct Process {
  using Nanoseconds = std::chrono::nanoseconds;

  ProcessId id = {};
  RankId rank = {};
  uint32_t ordinal = 0;         // its number among the processes of its rank; a successor gets the same number
  Identity identity = {};       // as on its series, without the labels of the settings
  std::string segment_id = {};  // empty: the segment is not read, or no more
  std::string run_id = {};
  uint32_t restart_count = 0;        // from the launcher
  std::string library_version = {};  // from SegmentReader::writer(); empty: unknown

  uint64_t predecessors = 0;  // processes of this run that ended in this place; includes an ended one itself
  // Processes that took this place after another process, and whose places are on disk: the next agent counts no fewer, if it
  // can read their segments.
  uint64_t restarts = 0;
  bool alive = false;       // false: no process has this place now; the fields describe the last one that ended
  bool runs_other = false;  // it is alive, but replaced its program by exec, and the new one has recorded nothing yet
  bool forked = false;      // by a process of the same rank: a data loader, for example
  bool hangs = false;       // it, or its job, as of the collection before; of a living process
  // It ended by a signal or an error, and is missed: no other has replaced it, and the command has not ended.
  bool died = false;
  // How the last process that ended in this place did (ends.h): an ended process, or the predecessor of a living one;
  // empty: there is none, or that is not known yet.
  std::string last_exit = {};
  // When an ended process was found to have ended, even by a former agent. No time: not known.
  std::chrono::system_clock::time_point ended_at = {};

  uint64_t birth_unix_ns = 0;  // when it began to record
  Nanoseconds began{0};        // of CLOCK_MONOTONIC, as are the moments below
  Nanoseconds recorded{0};     // when it began to record; 0: as it began

  // When the collector last found a value changed; at most one interval late. No time: no value has changed yet.
  std::chrono::system_clock::time_point last_change = {};
  // How often the collector has found a value changed.
  uint64_t changes = 0;
  bool has_changed = false;  // the same, or a counter that is not 0
  // How full the segment is, from 0 to 1.
  double segment_used_ratio = 0;

  ProcessUsage usage = {};  // WorkerMetrics adds it

  // As HangJudge has found; of a living process.
  HangVerdict verdict = HangVerdict::kEnded;
  std::chrono::milliseconds unchanged{0};  // for how long its metrics have not changed
  uint64_t judged_changes = 0;             // how often they have, as former agents have seen it, too

  // What it does, or did when it ended (persia/metrics/phase.h); empty: it does not tell.
  std::string phase = {};
  std::chrono::milliseconds in_phase{0};  // of a living process
  // The time in each phase, the present one, and until when the times count; no moment: no clock runs.
  std::vector<std::pair<std::string, Nanoseconds>> phases = {};
  std::optional<Nanoseconds> clocks_until = {};
  Nanoseconds last_mark{0};  // when it last entered a phase, or exited; 0: it has entered none
  // Of a living process, in seconds and until now; empty: it marks no phases.
  std::map<std::string, double> phase_seconds = {};
  // The step that it is in, by its number if it has given numbers, else by its own count.
  std::optional<double> step = {};
  std::optional<double> first_step = {};  // none: it has given no number

  std::optional<ProcessEnd> end = {};  // in the collection that reports it, and of what is kept of it

  [[nodiscard]] ProcessPlace place() const { return {rank, ordinal}; }
  [[nodiscard]] std::optional<double> NumberedStep() const { return first_step ? step : std::nullopt; }
  // How many, of a process that has not numbered them.
  [[nodiscard]] double CountedSteps() const { return first_step ? 0 : step.value_or(0); }

  friend bool operator==(const Process&, const Process&) = default;
};

// How a process ended whose exit was not known when it was folded.
struct LateExit {
  std::string segment_id;
  std::string exit = {};
  ProcessPlace place = {};
  ProcessId id = {};
};

// The processes of an identity that have ended, by how they did.
struct EndedProcesses {
  Identity identity;
  std::map<std::string, uint64_t> exits;
};

}  // namespace persia::agent
