// Which process it is, which rank, and which place of the rank. The rank is the owner of its processes' series.
//
// Each has its fields for files/bytes.h. Thread safety: plain data.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace persia::agent {

// Distinguishes a process from all others that have its pid: before and after it, and in other containers.
struct ProcessId {
  uint32_t pid = 0;            // in its pid namespace; 0: not known
  uint64_t start_ticks = 0;    // field 22 of /proc/<pid>/stat; 0: not known
  uint64_t pid_namespace = 0;  // inode of /proc/<pid>/ns/pid; 0: not known

  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

// An instance of the job. The values of its processes are merged.
struct RankId {
  std::string role = {};
  int32_t replica = 0;

  friend auto operator<=>(const RankId&, const RankId&) = default;
};

// A process of a rank has a number while it runs, and its successor gets the same one.
struct ProcessPlace {
  RankId rank = {};
  uint32_t ordinal = 0;

  friend auto operator<=>(const ProcessPlace&, const ProcessPlace&) = default;
};

template <class Archive>
void Fields(Archive& archive, ProcessId& id) {
  archive(id.pid, id.pid_namespace, id.start_ticks);
}

template <class Archive>
void Fields(Archive& archive, RankId& rank) {
  archive(rank.role, rank.replica);
}

template <class Archive>
void Fields(Archive& archive, ProcessPlace& place) {
  archive(place.rank, place.ordinal);
}

}  // namespace persia::agent
