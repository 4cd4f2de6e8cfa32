// One process of the job, as its segment and the collector know it.
//
// Thread safety: plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "model/snapshot.h"

namespace persia::agent {

struct WorkerProcess {
  Identity identity;          // as on its series, before the config's labels
  uint32_t ordinal = 0;       // its number among the processes of its identity; the next process on that place has the same
  uint64_t predecessors = 0;  // processes of this run that ended on that place; of an empty place the last one included
  bool alive = false;         // false: the place is empty, and the rest is of the process that ended there last

  uint32_t pid = 0;            // in its pid namespace
  uint64_t pid_namespace = 0;  // inode of /proc/<pid>/ns/pid
  uint64_t start_ticks = 0;    // field 22 of /proc/<pid>/stat
  std::string run_id = {};
  uint32_t restart_count = 0;  // as the launcher said
  // Of the library in it, SegmentReader::writer(); empty: not known, any more or at all.
  std::string library_version = {};
  // When a value of it last changed, as far as the collector's reads tell: at most one interval late.
  std::chrono::system_clock::time_point last_change;
};

}  // namespace persia::agent
