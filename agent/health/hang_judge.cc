#include "health/hang_judge.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

// Scrapes collect between two looks.
constexpr size_t kGaps = 4;

}  // namespace

void HangJudge::Look(std::span<Process> processes, TimePoint now, const Settings& settings) {
  if (last_look_) {
    const auto since = std::chrono::duration_cast<Milliseconds>(now - *last_look_);
    seen_ += std::clamp(since, Milliseconds(0), 2 * settings.interval);
    gaps_.push_back(since);
    if (gaps_.size() > kGaps) gaps_.pop_front();
  }
  last_look_ = now;
  ++looks_;
  if (std::exchange(setting_, settings.hang_after) != settings.hang_after && looks_ > 1)
    for (auto& [key, track] : tracks_) track.hangs = false;
  if (seen_ - window_began_ >= kRhythmWindow) {
    longest_before_ = std::exchange(longest_, Milliseconds(0));
    window_began_ = seen_;
  }
  std::vector<Track*> tracks(processes.size());
  for (size_t i = 0; i < processes.size(); ++i) {
    Process& process = processes[i];
    process.verdict = HangVerdict::kEnded;
    process.unchanged = Milliseconds(0);
    process.judged_changes = 0;
    if (!process.alive || process.runs_other) continue;
    Track& track = tracks_[{process.id, process.ordinal}];
    UpdateTrack(process, settings.interval, track);
    tracks[i] = &track;
    process.unchanged = seen_ - track.changed_at;
    process.judged_changes = track.changes;
  }
  std::erase_if(tracks_, [&](const auto& known) { return known.second.look != looks_; });
  bool any_is_judged = false;
  Milliseconds startup{0};
  job_unchanged_.reset();
  // A launcher goes on while its ranks hang: torchrun keeps its rendezvous alive.
  const auto is_launcher = [](const Process& process) { return process.rank.role == kLauncherRole; };
  const bool has_ranks =
      std::ranges::any_of(processes, [&](const Process& process) { return process.alive && !is_launcher(process); });
  for (size_t i = 0; i < processes.size(); ++i) {
    if (tracks[i] == nullptr || tracks[i]->changes == 0 || (has_ranks && is_launcher(processes[i]))) continue;
    any_is_judged = any_is_judged || tracks[i]->changes >= kChangesToJudge;
    startup = std::max(startup, tracks[i]->startup);
    job_unchanged_ = std::min(job_unchanged_.value_or(Milliseconds::max()), processes[i].unchanged);
  }
  SetHangAfter(settings, any_is_judged ? Milliseconds(0) : startup);

  const bool judges = hang_after_.count() > 0;
  for (size_t i = 0; i < processes.size(); ++i) {
    if (tracks[i] == nullptr) continue;
    const bool is_judged = judges && tracks[i]->changes >= kChangesToJudge;
    processes[i].verdict = is_judged ? HangVerdict::kRuns : HangVerdict::kNotJudged;
  }
  const Milliseconds newest = job_unchanged_.value_or(Milliseconds::max());  // change of any process
  job_hangs_ = judges && any_is_judged && newest >= hang_after_;
  // Processes that wait for each other do not stop in the same collection: the first of them is not singled out, either.
  const bool job_goes_on = newest < hang_after_ / 2;
  for (size_t i = 0; i < processes.size(); ++i) {
    if (processes[i].verdict != HangVerdict::kRuns) continue;
    tracks[i]->hangs = tracks[i]->hangs || (job_goes_on && processes[i].unchanged >= hang_after_);
    if (tracks[i]->hangs) processes[i].verdict = HangVerdict::kHung;
  }
}

void HangJudge::UpdateTrack(const Process& process, Milliseconds interval, Track& track) {
  const bool is_new = std::exchange(track.look, looks_) == 0;
  if (is_new && track.changes == 0) {
    track.read = track.changes = process.changes;
    track.changed_at = track.counted_at = track.began_at = seen_;
    return;
  }
  if (std::exchange(track.read, process.changes) == process.changes) return;
  if (track.changes > 0) longest_ = std::max(longest_, seen_ - track.changed_at);
  if (track.changes == 0) track.startup = seen_ - track.began_at;
  // What a process records while it starts is one change, however many collections see a part of it.
  if (track.changes == 0 || seen_ - track.counted_at >= std::min(interval, kStartup)) {
    ++track.changes;
    track.counted_at = seen_;
  }
  track.changed_at = seen_;
  track.hangs = false;
}

void HangJudge::Restore(const HealthMemory& memory, HealthMemory::TimePoint now) {
  longest_before_ = memory.longest_pause;
  for (const HealthMemory::Known& process : memory.processes) {
    const auto unchanged = process.unchanged_since ? now - *process.unchanged_since : HealthMemory::TimePoint::duration(0);
    tracks_[{process.id, process.ordinal}] = {
        .changes = process.changes,
        .changed_at = seen_ - std::max(std::chrono::duration_cast<Milliseconds>(unchanged), Milliseconds(0)),
        .hangs = process.hung_since.has_value()};
  }
}

void HangJudge::SetHangAfter(const Settings& settings, Milliseconds startup) {
  const Milliseconds pause = longest_pause();
  const Milliseconds by_rhythm = std::max(std::clamp(kPauses * pause, kLeast, kMost), std::min(pause * 3 / 2, kMostOfPause));
  hang_after_ = settings.hang_after ? *settings.hang_after : std::max(by_rhythm, kPauses * startup);
  if (hang_after_.count() <= 0) return;
  // A setting shorter than a few collections would take each pause between two of them for a hang. Where collections are rare,
  // so are looks.
  const Milliseconds gap = gaps_.empty() ? settings.interval : *std::ranges::max_element(gaps_);
  hang_after_ = std::max(hang_after_, kPauses * std::min(gap, settings.interval));
}

}  // namespace persia::agent
