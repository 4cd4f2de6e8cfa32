// The state file with the position up to which each process's events were read, so that a restarted agent does not write them
// again.
//
// The positions are saved after the events were written: an agent that is killed in between writes some events twice, but loses
// none. Thread safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "files/journal_writer.h"
#include "job/job_session.h"

namespace persia::agent {

class EventPositionFile {
 public:
  // The number of the next record, by the segment's id.
  using Positions = std::map<std::string, uint64_t>;

  explicit EventPositionFile(const StateLocation& location);

  // Empty if there is no file, or if it cannot be read.
  Positions Load();
  // Passes the positions to a thread that writes the file, if one changed.
  void Save(const Positions& positions);
  // Waits until the positions that were passed are written.
  void Flush(std::chrono::milliseconds patience) { writer_.AwaitWritten(writer_.last(), patience); }

 private:
  const std::shared_ptr<JournalFile> file_;
  JournalWriter writer_;
  Positions passed_;
};

}  // namespace persia::agent
