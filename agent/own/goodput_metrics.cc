#include "own/goodput_metrics.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>

namespace persia::agent {
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

}  // namespace persia::agent
