// The encoding of the collector's state: the run, the folded segments whose files may still exist, and the values of the ended
// processes.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ledger/retired_processes.h"

namespace persia::agent {

// Of the payload that EncodeRetired writes. Increased by each change that an older agent would misread. DecodeRetired reads all
// versions from 1 on.
inline constexpr uint32_t kRetiredStateVersion = 2;

struct RetiredState {
  std::string run_id = {};
  std::set<std::string> folded = {};  // segment ids
  // The ordinals of the processes that were alive when the state was saved, by segment id.
  std::map<std::string, uint32_t> ordinals = {};
  // Their values then, each encoded, in the current version, as a state of that process alone; empty unless segments may be
  // lost before the state.
  std::map<std::string, std::string> living = {};
  RetiredProcesses processes;
};

// Expired gauges are left out.
std::string EncodeRetired(const RetiredState& state, const CollectTime& now);

// The payload may be malformed: an error says how. Times to live continue, by the wall clock.
Result<RetiredState> DecodeRetired(std::string_view payload, const RetiredProcesses::Options& options, const CollectTime& now,
                                   uint32_t version = kRetiredStateVersion);

// Only the run id; empty if the payload is malformed.
std::string RunOfRetired(std::string_view payload);

}  // namespace persia::agent
