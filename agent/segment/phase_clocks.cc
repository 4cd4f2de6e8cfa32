#include "segment/phase_clocks.h"

#include <algorithm>
#include <array>
#include <utility>

#include "segment_format.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;

}  // namespace

void PhaseClocks::Add(uint64_t at, uint32_t real, std::string phase) {
  clocks_.push_back({.at = at, .real = real, .phase = std::move(phase)});
}

void PhaseClocks::Read(const SegmentFile& file, uint64_t until, SegmentValues& values) {
  read_until_ = until;
  any_runs_ = false;
  bool changed = false;
  for (Clock& clock : clocks_) {
    constexpr int kTries = 100;  // the writer would have to start and stop it in each
    std::array<uint64_t, segment::kClockStart + 1> cells{};
    uint64_t word = ~cells[0];
    for (int i = 0; i < kTries && word != cells[0]; ++i)
      if (!file.CopyInOrder(clock.at, cells) || !file.LoadAcquire(clock.at, word)) break;
    if (word == cells[0]) {
      const uint64_t ns = segment::ClockNs(word, std::max(until, cells[segment::kClockStart]));
      changed = changed || ns != clock.ns;
      clock.ns = ns;
      clock.word = word;
      clock.runs = segment::ClockRuns(word);
      clock.started_ns = cells[segment::kClockStart];
      any_runs_ = any_runs_ || clock.runs;
    }
    values.reals[clock.real] = {.first = segment::SecondsOf(clock.ns)};
  }
  changes_ += changed ? 1 : 0;
}

void PhaseClocks::CopySeconds(const SegmentValues& from, SegmentValues& to) const {
  for (const Clock& clock : clocks_)
    if (clock.real < from.reals.size()) to.reals[clock.real] = from.reals[clock.real];
}

// Between two phases, a read may find the clock of neither running, or of both: then the later one counts.
std::optional<PresentPhase> PhaseClocks::Present() const {
  const Clock* present = nullptr;
  for (const Clock& clock : clocks_)
    if (clock.runs && (present == nullptr || clock.started_ns > present->started_ns)) present = &clock;
  return present == nullptr ? std::nullopt : std::optional(PresentPhase{present->phase, present->started_ns});
}

std::vector<PhaseTime> PhaseClocks::Times() const {
  std::vector<PhaseTime> times;
  times.reserve(clocks_.size());
  for (const Clock& clock : clocks_) times.push_back({clock.phase, clock.ns});
  return times;
}

std::vector<PhaseTime> PhaseClocks::TimesAt(uint64_t now_ns) const {
  std::vector<PhaseTime> times;
  times.reserve(clocks_.size());
  for (const Clock& clock : clocks_)
    times.push_back({clock.phase, segment::ClockNs(clock.word, std::max(now_ns, clock.started_ns))});
  return times;
}

uint64_t PhaseClocks::LastMark() const {
  uint64_t last = 0;
  for (const Clock& clock : clocks_) last = std::max(last, clock.started_ns);
  return last;
}

std::optional<uint64_t> PhaseClocks::Until() const {
  std::optional<uint64_t> until;
  for (const Clock& clock : clocks_)
    if (clock.runs) until = std::max(until.value_or(read_until_), clock.started_ns);
  return until;
}

}  // namespace persia::agent
