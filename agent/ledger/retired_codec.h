// The encoding of the ended processes' sums: their instances and groups, each separately.
//
// In the terms of files/bytes.h; ledger/state_format.md has the grammar. Times to live continue, by the wall clock.
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "ledger/retired_processes.h"

namespace persia::agent {

std::string EncodeInstance(const RankId& rank, const RetiredInstance& instance);
// Adds it to `processes`, or replaces it. False: the bytes are malformed.
bool DecodeInstance(std::string_view bytes, RetiredProcesses& processes, const CollectTime& now);

// Expired gauges are left out.
std::string EncodeGroup(const RetiredGroup& group, const CollectTime& now);
// Adds it to `processes`. False: the bytes are malformed.
bool DecodeGroup(std::string_view bytes, RetiredProcesses& processes, const CollectTime& now);

}  // namespace persia::agent
