// The records of the state. state_format.md has the payload of each.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "files/bytes.h"
#include "ledger/retired_processes.h"
#include "segment/measurements.h"

namespace persia::agent {

// The fields of what the ledger keeps of a segment, for files/bytes.h. state_format.md has the grammar.
//
// Thread safety: pure functions.

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

// The encoding of the ended processes' sums: their instances and groups, each separately.
//
// In the terms of files/bytes.h; ledger/state_format.md has the grammar. Times to live continue, by the wall clock.
// Thread safety: pure functions.
std::string EncodeInstance(const RankId& rank, const RetiredInstance& instance);
// Adds it to `processes`, or replaces it. False: the bytes are malformed.
bool DecodeInstance(std::string_view bytes, RetiredProcesses& processes, const CollectTime& now);

// Expired gauges are left out.
std::string EncodeGroup(const RetiredGroup& group, const CollectTime& now);
// Adds it to `processes`. False: the bytes are malformed.
bool DecodeGroup(std::string_view bytes, RetiredProcesses& processes, const CollectTime& now);

// The tags of the state's records. state_format.md has the payload of each.

// A new kind of record, or another payload, needs a new version of the state.
enum class StateRecord : uint16_t {
  kRun = 1,             // the run that all other records are of, and how many processes were folded; of a checkpoint
  kInstance = 2,        // an instance, replaced whole
  kGroup = 3,           // the sums of the ended processes of one identity; of a checkpoint
  kFolded = 4,          // the id of a folded segment whose file may exist; of a checkpoint
  kOrdinal = 5,         // the place of a process that is not folded
  kValues = 6,          // the changed values of a process that is not folded
  kFold = 7,            // the values of a process are added to the sums, and it is folded
  kForget = 8,          // a folded segment's file cannot exist any more
  kForgetInstance = 9,  // the sums of an instance were dropped because of the limits
  kHealth = 10,         // the judgement of the job's health, replaced whole
  kGoodput = 11,        // the accounts of the ranks' time, replaced whole
  kSeen = 12,           // until when the clocks that run have been counted
};

}  // namespace persia::agent
