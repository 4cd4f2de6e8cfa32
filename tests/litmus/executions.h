// Executions of the agent's reader over what a program has recorded, and the check of all that it shows.
//
// The reader reads a few times while the writer goes on, and once more after its end, which may be at any store. At each read:
// - it reports no problem, and skips no record;
// - it shows each series that was certainly made, none that was not begun, and its cells;
// - each value is between what has certainly reached the reader and what the program had begun to count, and never falls;
// - an event is as it was recorded, shown once, and shown unless it was overwritten; those shown and those counted as lost are
// all;
// - a mark of a normal exit is the right one, and the next read has all that was counted before it;
// - the last read, after the writer's end, has exactly what was counted.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "choices.h"
#include "notes.h"
#include "recorder.h"

namespace persia::litmus {

struct Execution {
  std::string wrong = {};  // empty: nothing
  uint64_t loads = 0;
};

// `image` is the segment's file.
Execution Execute(const Recorder& recorder, const Notes& notes, const std::shared_ptr<const std::string>& image,
                  Choices& choices);

}  // namespace persia::litmus
