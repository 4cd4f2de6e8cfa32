#include "own/rank_metrics.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace persia::agent {
namespace {

struct RankFamily {
  Rows::Family family;
  const char* label;
};

constexpr RankFamily kRankFamilies[] = {
    {{"persia_gauge_nan_series", MetricType::kGauge, "Series of the rank's gauge that are NaN. Absent if none is."}, "gauge"},
    {{"persia_hang", MetricType::kGauge,
      "For how long the other ranks of this agent have waited for the rank in the phase sync. Absent if they do not."},
     "phase"},
    {{"persia_rank_in_phase_seconds", MetricType::kGauge, "For how long the rank has been in the phase in which it is."},
     "phase"},
    {{"persia_rank_phase_seconds_per_step", MetricType::kGauge,
      "The time of a step that the rank spends in the phase, as of the last steps. In sync, it waits for others."},
     "phase"},
    {{"persia_straggler", MetricType::kGauge,
      "Seconds a step that the job loses by the rank, which is longer in the phase than the other ranks of this agent. Absent "
      "if they do not wait for it."},
     "phase"},
};

constexpr size_t kInPhase = 2;      // of kRankFamilies
constexpr size_t kMostPhases = 16;  // of a job whose ranks do the same

}  // namespace

std::shared_ptr<const Snapshot> RankMetrics::Collect(const RankReport& report, const NanCounts& nan_counts) {
  const auto seconds = [](std::chrono::duration<double> duration) { return duration.count(); };
  std::array<Values, kFamilyCount> values;  // in the order of kRankFamilies
  auto& [nan, hang, in_phase, of_step, straggler] = values;
  for (const auto& [series, count] : nan_counts) nan[series] = static_cast<double>(count);
  for (const RankReport::Awaited& one : report.awaited)
    hang[{one.verdict.identity, one.verdict.phase}] = seconds(one.verdict.waited);
  for (const RankReport::Present& rank : report.present) in_phase[{rank.identity, rank.phase}] = seconds(rank.in_phase);
  for (const StragglerJudge::Rank& rank : report.ranks)
    for (const auto& [phase, spent] : rank.seconds_per_step) of_step[{rank.identity, phase}] = spent;
  for (const RankReport::Straggler& one : report.stragglers)
    straggler[{one.verdict.identity, one.verdict.phase}] = one.verdict.seconds_per_step;
  // The series of a rank stay as long as it is there.
  std::set<Identity> there;
  for (const RankReport::Present& rank : report.present) there.insert(rank.identity);
  AddPhases(there, in_phase);
  for (size_t number = 0; number < kFamilyCount; ++number) {
    std::set<Series>& shown = shown_[number];
    for (const auto& [series, value] : values[number]) shown.insert(series);
    std::erase_if(shown,
                  [&](const Series& series) { return !there.contains(series.first) && !values[number].contains(series); });
    for (const Series& series : shown) {
      const auto found = values[number].find(series);
      rows_.On(series.first);
      rows_.Add(kRankFamilies[number].family, found == values[number].end() ? kAbsentValue : found->second,
                {{kRankFamilies[number].label, series.second}});
    }
  }
  return rows_.Take();
}

// What one rank does, all will: otherwise a thousand ranks would change the layout for minutes, until each has been seen in
// each phase.
void RankMetrics::AddPhases(const std::set<Identity>& ranks, const Values& in_phase) {
  std::set<Series>& shown = shown_[kInPhase];
  std::set<std::string> phases;
  for (const auto& [series, value] : in_phase) phases.insert(series.second);
  for (const Series& series : shown) phases.insert(series.second);
  if (phases.size() > kMostPhases || shown.size() == ranks.size() * phases.size()) return;
  for (const Identity& rank : ranks)
    for (const std::string& phase : phases) shown.emplace(rank, phase);
}

}  // namespace persia::agent
