// The values of one process when the state was last written: a copy of its segment's families, series and values.
//
//   SavedProcess saved;
//   std::string changes = saved.Update(measurements);   // the changes since the last call; may be empty
//   SavedProcess again;
//   again.Apply(changes);                               // has the same content as `saved`
//   std::vector<Measurements> inputs = {again.Input()};  // to be merged
//
// A segment's families and series are never removed, so that a copy only grows. Update applies the changes that it returns, so
// that a reader that replays the changes gets the same copy. Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/owned_series.h"
#include "ledger/retired_processes.h"
#include "segment/measurements.h"

namespace persia::agent {

class SavedProcess {
 public:
  // A segment's families and series only grow. If `now` has others than before, it replaces all.
  std::string Update(const Measurements& now, const LastProcess& process);
  // False: `changes` are malformed; the copy is undefined then.
  bool Apply(std::string_view changes);
  // All of it, as the changes from an empty copy.
  [[nodiscard]] std::string Whole() const;

  // Of an ended process. Valid until the next change of this object.
  [[nodiscard]] Measurements Input() const;
  [[nodiscard]] const LastProcess& process() const { return process_; }

 private:
  [[nodiscard]] bool IsBeginningOf(const Measurements& now) const;
  [[nodiscard]] std::string Head() const;

  std::string id_;
  SegmentIdentity identity_;
  uint64_t birth_unix_ns_ = 0;
  uint32_t ordinal_ = 0;
  LastProcess process_;
  OwnedSeries own_;
};

}  // namespace persia::agent
