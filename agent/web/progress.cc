#include "web/progress.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace persia::agent {
namespace {

constexpr char kStepCounter[] = "persia_progress_steps_total";
constexpr char kSampleCounter[] = "persia_progress_samples_total";
constexpr char kTokenCounter[] = "persia_progress_tokens_total";
constexpr char kPlannedGauge[] = "persia_progress_planned_steps";
constexpr char kStepGauge[] = "persia_phase_step";

std::optional<double> MedianRate(const RankValues& values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted;
  for (const auto& [rank, value] : values) sorted.push_back(value);
  std::ranges::sort(sorted);
  return sorted[sorted.size() / 2];
}

std::optional<double> TotalRate(const RankValues& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const auto& [rank, value] : values) sum += value;
  return sum;
}

std::optional<double> At(const RankValues& values, const RankValues::key_type& rank) {
  const auto found = values.find(rank);
  return found == values.end() || !std::isfinite(found->second) ? std::nullopt : std::optional(found->second);
}

// The end of the rank that ends last. If a rank makes no step now, its end is not known, nor is that of the job.
void AddEnd(const RankValues& planned, const RankValues& steps, const RankValues& rates, Progress& progress) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  double latest = -1;
  for (const auto& [rank, total] : planned) {
    const auto step = At(steps, rank);
    if (!step || !std::isfinite(total)) continue;
    const double left = std::max(0.0, total - *step);
    const double rate = At(rates, rank).value_or(0);
    const double remaining = left == 0 ? 0 : rate > 0 ? left / rate : kNever;
    if (remaining <= latest) continue;
    latest = remaining;
    progress.step = step;
    progress.planned_steps = total;
  }
  if (latest >= 0 && latest < kNever) progress.remaining_seconds = latest;
}

}  // namespace

std::optional<Progress> ProgressOf(std::span<const History::Entry> history, bool is_over) {
  if (history.empty()) return std::nullopt;
  const Snapshot& newest = *history.back().snapshot;
  const auto ended = EndedRanks(newest);
  const auto of_running = [&ended](RankValues values) {
    std::erase_if(
        values, [&ended](const auto& value) { return ended.contains(value.first); });
    return values;
  };
  const auto rates = [&](const char* counter) {
    return is_over ? RatesOf(history, counter, Throughput::kBeforeMs) : of_running(RatesOf(history, counter));
  };
  const RankValues step_rates = rates(kStepCounter);
  // Once all have ended, the last step is that of the job.
  const RankValues all_steps = ValueByRank(newest, kStepGauge);
  const bool all_ended = std::ranges::all_of(all_steps, [&ended](const auto& step) { return ended.contains(step.first); });
  const RankValues steps = all_ended ? all_steps : of_running(all_steps);
  const RankValues all_planned = ValueByRank(newest, kPlannedGauge);
  Progress progress{.steps_per_second = MedianRate(step_rates),
                    .samples_per_second = TotalRate(rates(kSampleCounter)),
                    .tokens_per_second = TotalRate(rates(kTokenCounter))};
  AddEnd(all_ended ? all_planned : of_running(all_planned), steps, is_over ? RankValues() : step_rates, progress);
  if (!progress.step && !steps.empty())
    progress.step = std::ranges::min_element(steps, {}, [](const auto& step) { return step.second; })->second;
  const bool is_known = progress.steps_per_second || progress.samples_per_second || progress.tokens_per_second || progress.step;
  return is_known ? std::optional(progress) : std::nullopt;
}

void StandStill(std::optional<Progress>& progress, std::optional<Throughput>& throughput) {
  if (progress) {
    for (auto* rate : {&progress->steps_per_second, &progress->samples_per_second, &progress->tokens_per_second})
      if (*rate) *rate = 0;
    progress->remaining_seconds.reset();
  }
  if (!throughput) return;
  throughput->now = 0;
  throughput->slowest.reset();
  for (auto& [rank, rate] : throughput->ranks) rate = 0;
}

}  // namespace persia::agent
