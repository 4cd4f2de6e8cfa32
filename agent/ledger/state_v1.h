// Reads the state of version 1, which the first agents wrote: one payload, replaced whole.
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
#include "ledger/saved_process.h"

namespace persia::agent {

struct StateOfVersion1 {
  std::string run_id = {};
  std::set<std::string> folded = {};                // segment ids whose files may still exist
  std::map<std::string, uint32_t> ordinals = {};    // of processes that were alive, by segment id
  std::map<std::string, SavedProcess> living = {};  // the values of those, if the state had them
  RetiredProcesses processes;
};

// The payload may be malformed: an error says how.
Result<StateOfVersion1> ReadStateOfVersion1(std::string_view payload, const RetiredProcesses::Options& options,
                                            const CollectTime& now);

}  // namespace persia::agent
