#include "own/health_metrics.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>

namespace persia::agent {

std::shared_ptr<const Snapshot> DeathMetrics::Collect() {
  constexpr Rows::Family kDeaths{"persia_worker_deaths_total", MetricType::kCounter,
                                 "Processes of this run that died, by cause; docs/deaths.md describes the causes."};
  rows_.On(identity_);
  for (size_t i = 0; i < kDeathCauses; ++i)
    rows_.Add(kDeaths, static_cast<double>((*totals_)[i]), {{"cause", Name(static_cast<DeathCause>(i))}});
  return rows_.Take();
}

namespace {

constexpr Bucket kAllBuckets[] = {Bucket::kStarting, Bucket::kRendezvous, Bucket::kData,       Bucket::kCompute,
                                  Bucket::kOther,    Bucket::kSync,       Bucket::kCheckpoint, Bucket::kRedone,
                                  Bucket::kHung,     Bucket::kDown,       Bucket::kUnmarked};
constexpr Bucket kWithoutMarks[] = {Bucket::kStarting, Bucket::kHung, Bucket::kDown, Bucket::kUnmarked};

double AsSeconds(std::chrono::duration<double> duration) { return duration.count(); }

constexpr Rows::Family kRatio{
    "persia_goodput_ratio", MetricType::kGauge,
    "Share of the time of all ranks of this agent since the run began that they computed steps which were kept, from 0 to 1: "
    "the bucket compute of persia_goodput_seconds_total. Of ranks that mark phases; absent if none does."};
constexpr Rows::Family kJobSeconds{
    "persia_goodput_seconds_total", MetricType::kCounter,
    "Time of all ranks of this agent, also of those that have left, by what they did: the sum of persia_rank_seconds_total."};
constexpr Rows::Family kMeanRepair{
    "persia_job_mean_time_to_repair_seconds", MetricType::kGauge,
    "Mean time from the failure of a rank's process until its successor trains new steps (MTTR). Absent until a rank has "
    "restarted."};
constexpr Rows::Family kRedone{
    "persia_rank_redone_steps_total", MetricType::kCounter,
    "Steps that the rank trained again: of a process, those up to the highest step that the rank had reached before it. "
    "Absent while that is unknown."};
constexpr Rows::Family kRepair{"persia_rank_repair_seconds_total", MetricType::kCounter,
                               "Time of the rank in down, starting and redone that belongs to its restarts."};
constexpr Rows::Family kRankRestarts{"persia_rank_restarts_total", MetricType::kCounter,
                                     "Processes that replaced one of the rank that had failed."};
constexpr Rows::Family kRankSeconds{
    "persia_rank_seconds_total", MetricType::kCounter,
    "Time of the rank since its first process started, by what it did. All buckets together are that time, without the times "
    "between a process that finished and the next one."};

}  // namespace

std::shared_ptr<const Snapshot> GoodputMetrics::Collect(
    const GoodputReport& report, const std::function<std::optional<Identity>(const RankId&)>& identity_of) {
  // A rank that marks no phases has only the buckets that need none.
  const auto add_buckets = [this](const Rows::Family& family, const GoodputReport::Rank& rank, bool marks) {
    for (const Bucket bucket : marks ? std::span<const Bucket>(kAllBuckets) : std::span<const Bucket>(kWithoutMarks))
      rows_.Add(family, AsSeconds(rank.time[static_cast<size_t>(bucket)]), {{"bucket", Name(bucket)}});
  };
  if (!report.ranks.empty()) {
    const auto repair = report.MeanRepair();
    rows_.On(agent_);
    rows_.Add(kRatio, report.Ratio());
    add_buckets(kJobSeconds, report.Total(), std::ranges::any_of(report.ranks, &GoodputReport::Rank::marks));
    rows_.Add(kMeanRepair, repair ? repair->count() : kAbsentValue);
  }
  for (const GoodputReport::Rank& rank : report.ranks) {
    const std::optional<Identity> identity = identity_of(rank.rank);
    if (!identity) continue;
    rows_.On(*identity);
    rows_.Add(kRedone, rank.redone_steps ? static_cast<double>(*rank.redone_steps) : kAbsentValue);
    rows_.Add(kRepair, AsSeconds(rank.repair));
    rows_.Add(kRankRestarts, static_cast<double>(rank.restarts));
    add_buckets(kRankSeconds, rank, rank.marks);
  }
  return rows_.Take();
}

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

namespace {

constexpr Rows::Family kFreeBytes{"persia_agent_metrics_dir_free_bytes", MetricType::kGauge,
                                  "Free space of the filesystem with the workers' segments."};
constexpr Rows::Family kSizeBytes{"persia_agent_metrics_dir_size_bytes", MetricType::kGauge,
                                  "Size of the filesystem with the workers' segments."};
constexpr Rows::Family kPushInterval{"persia_agent_push_interval_seconds", MetricType::kGauge, "Time between two pushes."};
constexpr Rows::Family kHangAfter{
    "persia_job_hang_after_seconds", MetricType::kGauge,
    "A process hangs if its metrics have not changed for this time, while others of its job did. Absent if nothing is judged."};
constexpr Rows::Family kJobHung{
    "persia_job_hung", MetricType::kGauge,
    "1 if no metric of any running process of this agent has changed for persia_job_hang_after_seconds, else 0. Processes "
    "whose metrics have hardly changed since their start do not count."};
constexpr Rows::Family kThroughput{
    "persia_job_throughput", MetricType::kGauge,
    "How fast the job makes progress: the rate of its counter of steps, batches or samples over 30 seconds, per "
    "second, of all ranks of this agent."};
constexpr Rows::Family kUnchanged{
    "persia_job_unchanged_seconds", MetricType::kGauge,
    "For how long no metric of any running process of this agent has changed. Absent until the first change."};

double InSeconds(std::chrono::duration<double> duration) { return duration.count(); }

}  // namespace

std::shared_ptr<const Snapshot> JobMetrics::Collect(const Values& values) {
  struct statvfs space {};
  const bool known = statvfs(directory_.c_str(), &space) == 0;
  const auto bytes = [&](fsblkcnt_t blocks) {
    return known ? static_cast<double>(blocks) * static_cast<double>(space.f_frsize) : kAbsentValue;
  };
  rows_.On(identity_);
  rows_.Add(kFreeBytes, bytes(space.f_bavail));
  rows_.Add(kSizeBytes, bytes(space.f_blocks));
  rows_.Add(kPushInterval, InSeconds(values.push_interval));
  rows_.Add(kHangAfter, values.hang_after.count() > 0 ? InSeconds(values.hang_after) : kAbsentValue);
  rows_.Add(kJobHung, values.hangs ? 1.0 : 0.0);
  rows_.Add(kUnchanged, values.unchanged ? InSeconds(*values.unchanged) : kAbsentValue);
  if (values.throughput) counter_ = values.throughput->first;
  if (!counter_.empty())
    rows_.Add(kThroughput, values.throughput ? values.throughput->second : kAbsentValue, {{"counter", counter_}});
  return rows_.Take();
}

}  // namespace persia::agent
