#include "web/throughput.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

constexpr std::string_view kWords[] = {"steps", "batches", "iterations", "samples", "examples", "tokens"};
constexpr std::string_view kTotal = "_total";
// Steps that are trained again are no progress.
constexpr std::string_view kRedoneSteps = "persia_rank_redone_steps_total";

using Rank = std::pair<std::string, std::string>;  // role and instance

template <class AnyLabels>
std::string ValueOf(const AnyLabels& labels, std::string_view name) {
  const auto found = std::find_if(labels.begin(), labels.end(), [&](const auto& label) { return label.first == name; });
  return found == labels.end() ? "" : std::string(found->second);
}

std::string_view LastWord(std::string_view name) {
  if (name.ends_with(kTotal)) name.remove_suffix(kTotal.size());
  return name.substr(name.rfind('_') + 1);
}

// The family's counts by rank, without those of the agent.
std::map<Rank, double> CountsOf(const Snapshot& snapshot, const FamilyLayout& family) {
  std::map<Rank, double> counts;
  for (const SeriesLayout& series : family.series) {
    const double value = snapshot.values[series.first_value];
    const Labels& identity = snapshot.layout->identities[series.identity].labels;
    Rank rank(ValueOf(identity, "role"), ValueOf(identity, "instance"));
    if (!IsAbsent(value) && rank.first != "agent") counts[std::move(rank)] += value;
  }
  return counts;
}

const FamilyLayout* ProgressIn(const Snapshot& newest) {
  for (const std::string_view word : kWords) {
    for (const FamilyLayout& family : newest.layout->families) {
      const bool fits = family.type == MetricType::kCounter && LastWord(family.name) == word && family.name != kRedoneSteps;
      if (fits && !CountsOf(newest, family).empty()) return &family;
    }
  }
  return nullptr;
}

std::map<Rank, double> CountsIn(const Snapshot& snapshot, const std::string& name) {
  for (const FamilyLayout& family : snapshot.layout->families)
    if (family.name == name && family.type == MetricType::kCounter) return CountsOf(snapshot, family);
  return {};
}

// The newest entry that is at least as old as this, else the oldest one; it or the first one after it that has the counter.
const History::Entry* EntryBefore(std::span<const History::Entry> history, int64_t at, const std::string& name) {
  auto entry = std::ranges::find_if(history, [&](const History::Entry& each) { return each.unix_ms > at; });
  if (entry != history.begin()) --entry;
  entry =
      std::find_if(entry, history.end(), [&](const History::Entry& each) { return !CountsIn(*each.snapshot, name).empty(); });
  return entry == history.end() ? nullptr : &*entry;
}

// Per second, of the ranks that had counted before.
std::map<Rank, double> RatesSince(const History::Entry& before, const History::Entry& newest, const std::string& name) {
  std::map<Rank, double> rates = CountsIn(*newest.snapshot, name);
  const std::map<Rank, double> then = CountsIn(*before.snapshot, name);
  const double seconds = static_cast<double>(newest.unix_ms - before.unix_ms) / 1000;
  std::erase_if(rates, [&](const auto& rank) { return !then.contains(rank.first); });
  for (auto& [rank, value] : rates) value = std::max(0.0, value - then.at(rank)) / seconds;
  return rates;
}

double SumOf(const std::map<Rank, double>& rates) {
  double sum = 0;
  for (const auto& [rank, rate] : rates) sum += rate;
  return sum;
}

// Adds the ranks whose main process has this value in a family of worker metrics.
void AddRanks(const Snapshot& newest, std::string_view name, double value, std::set<Rank>& ranks) {
  for (const FamilyLayout& family : newest.layout->families) {
    if (family.name != name) continue;
    for (const SeriesLayout& series : family.series) {
      if (newest.values[series.first_value] != value || ValueOf(series.labels, "process") != "0") continue;
      const Labels& identity = newest.layout->identities[series.identity].labels;
      ranks.emplace(ValueOf(identity, "role"), ValueOf(identity, "instance"));
    }
  }
}

// The ranks whose main process has ended, or hangs: they have another problem than being slow.
std::set<Rank> StandingIn(const Snapshot& newest) {
  std::set<Rank> standing = EndedRanks(newest);
  AddRanks(newest, "persia_process_hung", 1, standing);
  return standing;
}

std::optional<Throughput::Slowest> SlowestOf(std::map<Rank, double> rates, const Snapshot& newest) {
  const std::set<Rank> standing = StandingIn(newest);
  std::erase_if(rates, [&](const auto& rank) { return standing.contains(rank.first); });
  if (rates.size() < 2) return std::nullopt;
  std::vector<double> sorted;
  for (const auto& [rank, rate] : rates) sorted.push_back(rate);
  std::ranges::sort(sorted);
  // Of two, the faster one.
  const double median = sorted[sorted.size() / 2];
  const auto slowest = std::ranges::min_element(rates, {}, [](const auto& rank) { return rank.second; });
  if (slowest->second >= Throughput::kSlow * median) return std::nullopt;
  return Throughput::Slowest{slowest->first.first, slowest->first.second, slowest->second, median};
}

}  // namespace

std::optional<Throughput> ThroughputOf(std::span<const History::Entry> history) {
  if (history.size() < 2) return std::nullopt;
  const History::Entry& newest = history.back();
  const auto former = history.first(history.size() - 1);
  const FamilyLayout* family = ProgressIn(*newest.snapshot);
  if (family == nullptr) return std::nullopt;
  const auto* recent = EntryBefore(former, newest.unix_ms - Throughput::kNowMs, family->name);
  const auto* before = EntryBefore(former, newest.unix_ms - Throughput::kBeforeMs, family->name);
  if (recent == nullptr || before == nullptr || recent->unix_ms >= newest.unix_ms) return std::nullopt;
  std::map<Rank, double> rates = RatesSince(*recent, newest, family->name);
  return Throughput{.name = family->name,
                    .now = SumOf(rates),
                    .last_10m = SumOf(RatesSince(*before, newest, family->name)),
                    .slowest = SlowestOf(rates, *newest.snapshot),
                    .ranks = std::move(rates)};
}

RankValues RatesOf(std::span<const History::Entry> history, const std::string& counter, int64_t span_ms) {
  if (history.size() < 2) return {};
  const History::Entry& newest = history.back();
  const auto* before = EntryBefore(history.first(history.size() - 1), newest.unix_ms - span_ms, counter);
  if (before == nullptr || before->unix_ms >= newest.unix_ms) return {};
  return RatesSince(*before, newest, counter);
}

RankValues ValueByRank(const Snapshot& snapshot, const std::string& gauge) {
  RankValues values;
  for (const FamilyLayout& family : snapshot.layout->families) {
    if (family.name != gauge || family.type != MetricType::kGauge) continue;
    for (const SeriesLayout& series : family.series) {
      const double value = snapshot.values[series.first_value];
      if (IsAbsent(value)) continue;
      const Labels& identity = snapshot.layout->identities[series.identity].labels;
      const auto [at, added] = values.try_emplace({ValueOf(identity, "role"), ValueOf(identity, "instance")}, value);
      at->second = std::max(at->second, value);
    }
  }
  return values;
}

std::set<Rank> EndedRanks(const Snapshot& newest) {
  std::set<Rank> ended;
  AddRanks(newest, "persia_process_up", 0, ended);
  return ended;
}

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
