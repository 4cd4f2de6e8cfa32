// The state file that says up to which record each process's events were read, so that a restarted agent does not write them
// again.
//
// The positions are saved after the events were written: an agent that is killed in between writes some events twice, but loses
// none. Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "files/state_file.h"
#include "job/job_session.h"

namespace persia::agent {

class EventPositionFile {
 public:
  // The number of the next record, by the segment's id.
  using Positions = std::map<std::string, uint64_t>;

  explicit EventPositionFile(const StateLocation& location);

  // Empty if there is no file, or if it cannot be read.
  Positions Load();
  // Writes the file if a position changed.
  void Save(const Positions& positions);

 private:
  StateFile file_;
  Positions saved_;
};

}  // namespace persia::agent
