// The fields of what the ledger keeps of a segment, for files/bytes.h. state_format.md has the grammar.
//
// Thread safety: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "files/bytes.h"
#include "ledger/retired_processes.h"
#include "segment/measurements.h"

namespace persia::agent {

// The steady time of a wall time; `now` if the wall time is in the future, as after the clock was set back.
std::chrono::steady_clock::time_point SteadyTime(std::chrono::system_clock::time_point wall, const CollectTime& now);
// Whether a segment can have the family.
bool IsGood(const SegmentFamily& family);
// Whether the bytes are exactly `count` labels as in a segment's record.
bool AreLabels(std::string_view bytes, uint32_t count);

template <class Archive>
void Fields(Archive& archive, SegmentIdentity& identity) {
  archive(identity.job, identity.run_id, identity.role, identity.replica, identity.restart_count, identity.labels);
}

template <class Archive>
void Fields(Archive& archive, SegmentFamily& family) {
  archive(family.known);
  if (!family.known) return;
  archive(family.kind, family.policy, family.max_buckets, family.bounds, family.group, family.name, family.help, family.unit);
  archive.Check(IsGood(family));
}

template <class Archive>
void Fields(Archive& archive, FamilyAge& age) {
  archive(age.birth_unix_ns, age.segment_id, age.number);
}

template <class Archive>
void Fields(Archive& archive, LastProcess& process) {
  archive(process.ended, process.id, process.restart_count, process.last_change);
}

}  // namespace persia::agent
