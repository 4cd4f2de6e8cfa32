#include "workers/rank_processes.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace persia::agent {
namespace {

using std::chrono::nanoseconds;

constexpr size_t kMaxTimedPhaseBytes = 128;  // enough to distinguish phases
constexpr size_t kMaxTimedPhases = 64;       // the times of further ones count together

nanoseconds Now(clockid_t clock) {
  struct timespec time {};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

// The kernel counts a process's start from the boot, with the time that the machine was suspended.
nanoseconds StartOf(uint64_t ticks) {
  static const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const std::chrono::duration<double> since_boot(static_cast<double>(ticks) / ticks_per_second);
  const nanoseconds now = Now(CLOCK_BOOTTIME);
  const nanoseconds at = since_boot < now ? std::chrono::duration_cast<nanoseconds>(since_boot) : now;
  return at - (now - Now(CLOCK_MONOTONIC));
}

// By the wall clock, which may have been set since.
nanoseconds BirthOf(uint64_t birth_unix_ns, nanoseconds began) {
  const nanoseconds wall = Now(CLOCK_REALTIME);
  const nanoseconds birth(std::min(birth_unix_ns, static_cast<uint64_t>(wall.count())));  // also if the segment is corrupt
  return std::max(began, Now(CLOCK_MONOTONIC) - (wall - birth));
}

// Before the second look, nothing tells whether a gauge has changed.
bool HasChanged(const SegmentReader& reader) {
  return reader.changes() > 0 || std::ranges::any_of(
                                     reader.series(),
                                     [&](const SegmentSeries& series) {
                                       const SegmentFamily& family = reader.families()[series.record.family];
                                       const bool counts = family.kind == metrics::segment::Kind::kCounter && !family.clock;
                                       return counts && reader.values().wholes[series.whole] > 0;
                                     });
}

}  // namespace

RankProcess RankProcessOf(const SegmentLifecycle::Segment& segment) {
  const SegmentReader& reader = *segment.reader;
  RankProcess process{.rank = {reader.identity().role, reader.identity().replica},
                      .id = reader.id(),
                      .pid = reader.header().pid,
                      .start_ticks = reader.header().start_ticks,
                      .alive = segment.alive,
                      .forked = reader.forked(),
                      .began = StartOf(reader.header().start_ticks),
                      .birth_unix_ns = reader.header().birth_unix_ns,
                      .recorded = BirthOf(reader.header().birth_unix_ns, StartOf(reader.header().start_ticks)),
                      .restart_count = reader.identity().restart_count,
                      .has_changed = HasChanged(reader),
                      .runs_other = segment.runs_other,
                      // Of a program that numbers them: others only count those of the process.
                      .step = reader.first_step() ? reader.step() : std::nullopt,
                      .first_step = reader.first_step(),
                      .counted_steps = reader.first_step() ? 0 : reader.step().value_or(0),
                      .exit = segment.alive ? std::nullopt : segment.exit};
  const nanoseconds longest = std::max(Now(CLOCK_MONOTONIC) - process.began, nanoseconds(0));  // also if the segment is corrupt
  for (const PhaseTime& time : reader.clocks().Times()) {
    if (process.phases.size() < kMaxTimedPhases) process.phases.emplace_back(time.phase.substr(0, kMaxTimedPhaseBytes), 0);
    nanoseconds& in_phase = process.phases.back().second;
    in_phase = std::min(in_phase + std::min(nanoseconds(time.ns), longest), longest);
  }
  if (const auto phase = reader.clocks().Present()) process.phase = phase->name.substr(0, kMaxTimedPhaseBytes);
  if (const auto until = reader.clocks().Until()) process.clocks_until = nanoseconds(*until);
  process.last_mark = nanoseconds(reader.clocks().LastMark());
  return process;
}

}  // namespace persia::agent
