// The collector's state as it is written down: the run, the segments that were folded and whose files may still be there, and
// what the ended processes had measured.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "model/result.h"
#include "source/retired.h"

namespace persia::agent {

// Of the payload. A change that a former agent would misread makes it rise.
inline constexpr uint32_t kRetiredStateVersion = 1;

struct RetiredState {
  std::string run_id = {};
  std::set<std::string> folded = {};  // ids of segments
  // On which place of its instance each living process stood when this was written, by the id of its segment.
  std::map<std::string, uint32_t> places = {};
  // What each of them had measured then, as a state of it alone; where segments may be lost with their host's memory.
  std::map<std::string, std::string> living = {};
  RetiredProcesses processes;
};

// Gauges and instances whose time is over are left out.
std::string EncodeRetired(const RetiredState& state, const Moment& now);

// The payload may be anything: an error says what contradicts the grammar. Times to live go on where they were, as far as the
// wall clock tells how long ago that was.
Result<RetiredState> DecodeRetired(std::string_view payload, const RetiredProcesses::Options& options, const Moment& now);

// The run alone; empty if the payload does not say.
std::string RunOfRetired(std::string_view payload);

}  // namespace persia::agent
