// One process of the job, or the place of one that ended.
//
// Thread safety: plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "model/snapshot.h"

namespace persia::agent {

struct WorkerProcess {
  Identity identity;          // as on its series, without the labels of the settings
  uint32_t ordinal = 0;       // its number among the processes of its identity; a successor gets the same number
  uint64_t predecessors = 0;  // processes of this run that ended with this identity and ordinal; includes an ended one itself
  // Processes that took this ordinal after another process, and whose ordinals are on disk: the next agent counts no fewer, if
  // it can read their segments.
  uint64_t restarts = 0;
  bool alive = false;       // false: no process has this ordinal now; the fields describe the last one that ended
  bool runs_other = false;  // it is alive, but replaced its program by exec, and the new one has recorded nothing yet

  uint32_t pid = 0;            // in its pid namespace
  uint64_t pid_namespace = 0;  // inode of /proc/<pid>/ns/pid
  uint64_t start_ticks = 0;    // field 22 of /proc/<pid>/stat
  std::string run_id = {};
  uint32_t restart_count = 0;  // from the launcher
  // From SegmentReader::writer(); empty: unknown.
  std::string library_version = {};
  // When the collector last found a value changed; at most one interval late. No time: no value has changed yet.
  std::chrono::system_clock::time_point last_change;
  // How often the collector has found a value changed.
  uint64_t changes = 0;
  // How full the segment is, from 0 to 1.
  double segment_used_ratio = 0;
  // What a living process does (persia/metrics/phase.h), and for how long; empty: it does not tell.
  std::string phase = {};
  std::chrono::milliseconds in_phase{0};
  std::optional<double> step = {};
  // The time that it has spent in each phase, in seconds, with that of the present one; empty: it marks no phases.
  std::map<std::string, double> phase_seconds = {};

  // When an ended process was found to have ended, even by a former agent. No time: not known.
  std::chrono::system_clock::time_point ended_at = {};
  // How the last process that ended with this ordinal did (exit_reason.h): an ended process, or the predecessor of a living
  // one; empty: there is none, or that is not known yet.
  std::string last_exit = {};
  // The process ended by a signal or an error, and is missed: no other has replaced it, and the command has not ended.
  bool died = false;
};

// The processes of an identity that have ended, by how they did.
struct EndedProcesses {
  Identity identity;
  std::map<std::string, uint64_t> exits;
};

}  // namespace persia::agent
