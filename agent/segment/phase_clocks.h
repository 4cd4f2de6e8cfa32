// The clocks of a segment, one for each phase that the process has entered (persia/metrics/phase.h): how long it was in each.
//
//   clocks.Add(offset, series.real, "data");
//   clocks.Read(file, until, values);
//   if (const auto present = clocks.Present()) ... present->name
//
// A clock that runs counts on while its writer does nothing, so its time depends on until when it is counted. All results are
// of the last Read. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "segment/segment_file.h"
#include "segment/segment_records.h"

namespace persia::agent {

// What a process does.
struct PresentPhase {
  std::string name;
  uint64_t since_ns = 0;  // of CLOCK_MONOTONIC
};

// The time that a process has spent in a phase.
struct PhaseTime {
  std::string_view phase;  // valid until the next Add
  uint64_t ns = 0;

  friend bool operator==(const PhaseTime&, const PhaseTime&) = default;
};

class PhaseClocks {
 public:
  // The clock at this offset of the file. Its seconds are SegmentValues::reals[real].
  void Add(uint64_t at, uint32_t real, std::string phase);

  // Reads all clocks, and sets their seconds in `values`. A clock that runs has run until `until`, in nanoseconds of
  // CLOCK_MONOTONIC, or until it started, if that is later.
  void Read(const SegmentFile& file, uint64_t until, SegmentValues& values);
  // Copies the seconds of all clocks, so that a comparison of these values finds no change because time has passed.
  void CopySeconds(const SegmentValues& from, SegmentValues& to) const;

  // None: the process has no phases, or all clocks stand.
  [[nodiscard]] std::optional<PresentPhase> Present() const;
  // The time in each phase, in the order in which they were entered.
  [[nodiscard]] std::vector<PhaseTime> Times() const;
  // The same until `now_ns` of CLOCK_MONOTONIC. REQUIRES: the process is alive.
  [[nodiscard]] std::vector<PhaseTime> TimesAt(uint64_t now_ns) const;
  // Until when Times counts, in nanoseconds of CLOCK_MONOTONIC. None: no clock runs.
  [[nodiscard]] std::optional<uint64_t> Until() const;
  // The latest start of a clock, or the writer's exit if that stopped the last one. 0: none has started.
  [[nodiscard]] uint64_t LastMark() const;
  // Whether values change without the writer.
  [[nodiscard]] bool AnyRuns() const { return any_runs_; }
  // How many Reads have found the time of a clock changed.
  [[nodiscard]] uint64_t changes() const { return changes_; }

 private:
  struct Clock {
    uint64_t at;
    uint32_t real;
    std::string phase;
    // Of the last Read.
    uint64_t ns = 0;
    uint64_t word = 0;
    bool runs = false;
    uint64_t started_ns = 0;
  };

  std::vector<Clock> clocks_;
  bool any_runs_ = false;
  uint64_t changes_ = 0;
  uint64_t read_until_ = 0;
};

}  // namespace persia::agent
