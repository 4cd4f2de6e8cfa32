#include "workers/segment_process.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "naming/naming.h"

namespace persia::agent {
namespace {

using std::chrono::nanoseconds;

constexpr size_t kMaxPhaseBytes = 128;  // enough to distinguish phases
constexpr size_t kMaxTimedPhases = 64;  // the times of further ones count together
constexpr size_t kMaxJudgedPhases = 32;

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

std::string ShownPhase(std::string_view phase) { return SanitizeText(phase.substr(0, kMaxPhaseBytes)); }

void AddPhases(const PhaseClocks& clocks, std::chrono::steady_clock::time_point now, Process& process) {
  const nanoseconds longest = std::max(Now(CLOCK_MONOTONIC) - process.began, nanoseconds(0));  // also if the segment is corrupt
  for (const PhaseTime& time : clocks.Times()) {
    const std::string phase = ShownPhase(time.phase);
    auto of = std::ranges::find(process.phases, phase, [](const auto& known) { return known.first; });
    if (of == process.phases.end() && process.phases.size() == kMaxTimedPhases) --of;
    if (of == process.phases.end()) of = process.phases.emplace(of, phase, 0);
    of->second = std::min(of->second + std::min(nanoseconds(time.ns), longest), longest);
  }
  const std::optional<PresentPhase> present = clocks.Present();
  if (present) process.phase = ShownPhase(present->name);
  if (const auto until = clocks.Until()) process.clocks_until = nanoseconds(*until);
  process.last_mark = nanoseconds(clocks.LastMark());
  if (!process.alive) return;
  const auto now_ns = static_cast<uint64_t>(nanoseconds(now.time_since_epoch()).count());
  const nanoseconds in_phase(present ? now_ns - std::min(now_ns, present->since_ns) : 0);
  process.in_phase = std::chrono::duration_cast<std::chrono::milliseconds>(in_phase);
  for (const auto& [phase, ns] : clocks.TimesAt(now_ns)) {
    if (process.phase_seconds.size() == kMaxJudgedPhases) break;
    process.phase_seconds[ShownPhase(phase)] += static_cast<double>(ns) * 1e-9;
  }
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

Process ProcessOf(const SegmentLifecycle::Segment& segment, std::chrono::steady_clock::time_point now) {
  const SegmentReader& reader = *segment.reader;
  const nanoseconds began = StartOf(reader.process().start_ticks);
  Process process{.id = reader.process(),
                  .rank = reader.identity().rank(),
                  .ordinal = segment.place ? segment.place->ordinal : 0,
                  .segment_id = reader.id(),
                  .run_id = reader.identity().run_id,
                  .restart_count = reader.identity().restart_count,
                  .library_version = reader.writer().library_version,
                  .alive = segment.alive,
                  .runs_other = segment.runs_other,
                  .forked = reader.forked(),
                  .last_exit = segment.alive ? "" : segment.exit.value_or(""),
                  .birth_unix_ns = reader.header().birth_unix_ns,
                  .began = began,
                  .recorded = BirthOf(reader.header().birth_unix_ns, began),
                  .last_change = reader.last_change(),
                  .changes = reader.changes(),
                  .has_changed = HasChanged(reader),
                  .segment_used_ratio = reader.UsedRatio(),
                  .step = reader.step(),
                  .first_step = reader.first_step(),
                  .end = segment.end};
  AddPhases(reader.clocks(), now, process);
  return process;
}

}  // namespace persia::agent
