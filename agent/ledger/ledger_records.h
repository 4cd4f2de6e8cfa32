// The tags of the state's records. state_format.md has the payload of each.
#pragma once

#include <cstdint>

namespace persia::agent {

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
