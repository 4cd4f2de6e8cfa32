#include "health/standstill.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "health/health_report.h"

namespace persia::agent {
namespace {

bool IsLivingRank(const Process& process) { return process.alive && !process.runs_other && IsRankPlace(WorkerKeyOf(process)); }

}  // namespace

void StandstillJudge::Look(std::span<const Process> processes, TimePoint now, Milliseconds hang_after) {
  ++looks_;
  roles_.clear();
  ranks_.clear();
  const bool by_steps =
      std::ranges::any_of(processes, [](const Process& process) { return IsLivingRank(process) && process.step.has_value(); });
  if (std::exchange(by_steps_, by_steps) != by_steps) tracks_.clear();
  struct Found {
    bool moves = false;
    Milliseconds unmoved = Milliseconds::max();
    std::vector<Rank> standing = {};
  };
  std::map<std::string, Found> found;
  for (const Process& process : processes) {
    if (!IsLivingRank(process) || (by_steps && !process.step)) continue;
    Track& track = tracks_[RankProcessKeyOf(process)];
    Update(track, by_steps ? *process.step : static_cast<double>(process.changes), now);
    const auto unmoved = std::chrono::duration_cast<Milliseconds>(now - track.moved_at);
    Milliseconds patience = std::max(kLeast, kPauses * std::max(track.longest, track.longest_before));
    if (hang_after.count() > 0) patience = std::min(patience, hang_after);
    Found& role = found[LabelValueOf(process.identity, "role")];
    role.moves = role.moves || unmoved < patience;
    role.unmoved = std::min(role.unmoved, unmoved);
    if (unmoved >= patience && track.moves >= kMovesToJudge) role.standing.push_back({process.identity, unmoved});
  }
  std::erase_if(tracks_, [&](const auto& track) { return track.second.look != looks_; });
  for (auto& [name, role] : found) {
    if (!role.moves && !role.standing.empty()) roles_.push_back({name, role.unmoved});
    if (role.moves && by_steps) std::ranges::move(role.standing, std::back_inserter(ranks_));
  }
  job_stands_ = !roles_.empty() && std::ranges::none_of(found, [](const auto& role) { return role.second.moves; });
}

void StandstillJudge::Update(Track& track, double place, TimePoint now) const {
  if (std::exchange(track.look, looks_) == 0) {
    track.place = place;
    track.moved_at = track.window_began = now;
    return;
  }
  if (now - track.window_began >= kWindow) {
    track.longest_before = std::exchange(track.longest, Milliseconds(0));
    track.window_began = now;
  }
  if (std::exchange(track.place, place) == place) return;
  const auto pause = std::chrono::duration_cast<Milliseconds>(now - std::exchange(track.moved_at, now));
  if (++track.moves >= kMovesToJudge) track.longest = std::max(track.longest, pause);
}

}  // namespace persia::agent
