#include "health/hang_judge.h"

#include <algorithm>
#include <utility>

namespace persia::agent {

void HangJudge::Look(std::span<const WorkerProcess> processes, TimePoint now, const Settings& settings) {
  if (last_look_) {
    const auto since = std::chrono::duration_cast<Milliseconds>(now - *last_look_);
    seen_ += std::clamp(since, Milliseconds(0), 2 * settings.interval);
  }
  last_look_ = now;
  ++looks_;
  if (seen_ - window_began_ >= kRhythmWindow) {
    longest_before_ = std::exchange(longest_, Milliseconds(0));
    window_began_ = seen_;
  }
  verdicts_.assign(processes.size(), Verdict::kEnded);
  unchanged_.assign(processes.size(), Milliseconds(0));
  std::vector<const Track*> tracks(processes.size());
  for (size_t i = 0; i < processes.size(); ++i) {
    const WorkerProcess& process = processes[i];
    if (!process.alive) continue;
    Track& track = tracks_[{process.pid_namespace, process.pid, process.start_ticks, process.ordinal}];
    UpdateTrack(process, track);
    tracks[i] = &track;
    unchanged_[i] = seen_ - track.changed_at;
  }
  std::erase_if(tracks_, [&](const auto& known) { return known.second.look != looks_; });
  SetHangAfter(settings);

  const bool judges = hang_after_.count() > 0;
  bool any_is_judged = false;
  Milliseconds newest = Milliseconds::max();  // change of any process
  for (size_t i = 0; i < processes.size(); ++i) {
    if (tracks[i] == nullptr) continue;
    const bool is_judged = judges && tracks[i]->changes >= kChangesToJudge;
    verdicts_[i] = is_judged ? Verdict::kRuns : Verdict::kNotJudged;
    any_is_judged = any_is_judged || is_judged;
    if (tracks[i]->changes > 0) newest = std::min(newest, unchanged_[i]);
  }
  job_hangs_ = any_is_judged && newest >= hang_after_;
  // Processes that wait for each other do not stop in the same collection: the first of them is not singled out, either.
  if (newest >= hang_after_ / 2) return;
  for (size_t i = 0; i < processes.size(); ++i) {
    if (verdicts_[i] == Verdict::kRuns && unchanged_[i] >= hang_after_) verdicts_[i] = Verdict::kHung;
  }
}

void HangJudge::UpdateTrack(const WorkerProcess& process, Track& track) {
  if (track.look == 0) {
    track = {.changes = process.changes, .changed_at = seen_, .look = looks_};
    return;
  }
  track.look = looks_;
  if (process.changes == track.changes) return;
  if (track.changes > 0) longest_ = std::max(longest_, seen_ - track.changed_at);
  track.changes = process.changes;
  track.changed_at = seen_;
}

void HangJudge::SetHangAfter(const Settings& settings) {
  const Milliseconds by_rhythm = kPauses * std::max(longest_, longest_before_);
  // A setting shorter than a few collections would take each pause between two of them for a hang.
  hang_after_ = settings.hang_after ? *settings.hang_after : std::clamp(by_rhythm, kLeast, kMost);
  if (hang_after_.count() > 0) hang_after_ = std::max(hang_after_, kPauses * settings.interval);
}

}  // namespace persia::agent
