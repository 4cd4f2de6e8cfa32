// The tags of the state's records. state_format.md has the payload of each.
#pragma once

#include <cstdint>

namespace persia::agent {

// A tag never changes its meaning; a new kind of record gets a new tag.
enum class StateRecord : uint16_t {
  kVersion1 = 0,         // the whole state of a file of version 1
  kRun = 1,              // the run that all other records are of
  kProcesses = 2,        // how many processes were folded
  kInstance = 3,         // an instance
  kGroup = 4,            // the sums of the ended processes of one identity
  kFolded = 5,           // the id of a folded segment whose file may exist
  kOrdinal = 6,          // the ordinal of a process that is not folded
  kValues = 7,           // the changed values of a process that is not folded
  kFold = 8,             // the values of a process are added to the sums, and it is folded
  kForget = 9,           // a folded segment's file cannot exist any more
  kForgetInstance = 10,  // the sums of an instance were dropped because of the limits
  kExit = 11,            // how a process ended that is folded next
  kExits = 12,           // how the processes of an instance ended
  kSpans = 13,           // when the last processes of an instance lived
  kHealth = 14,          // the judgement of the job's health, replaced whole
  kRemoved = 15,         // the series that a process which is not folded has removed
  kGroupRemoved = 16,    // the series of a group that were removed
  kSeen = 17,            // until when the clocks that run have been counted
  kGoodput = 20,         // the accounts of the ranks' time, replaced whole
  kOrdinalOf = 21,       // the instance in which a process that is not folded has its ordinal
};

}  // namespace persia::agent
