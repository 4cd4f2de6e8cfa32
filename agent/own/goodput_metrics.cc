// The values of a snapshot: for each family in turn, those of its series in the order of the ranks, and of a rank in the order
// of its buckets.
#include "own/goodput_metrics.h"

#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "model/layout_builder.h"

namespace persia::agent {
namespace {

constexpr Bucket kAllBuckets[] = {Bucket::kStarting, Bucket::kRendezvous, Bucket::kData,       Bucket::kCompute,
                                  Bucket::kOther,    Bucket::kSync,       Bucket::kCheckpoint, Bucket::kRedone,
                                  Bucket::kHung,     Bucket::kDown,       Bucket::kUnmarked};
constexpr Bucket kWithoutMarks[] = {Bucket::kStarting, Bucket::kHung, Bucket::kDown, Bucket::kUnmarked};

std::span<const Bucket> BucketsOf(bool marks) {
  return marks ? std::span<const Bucket>(kAllBuckets) : std::span<const Bucket>(kWithoutMarks);
}

double AsSeconds(std::chrono::duration<double> duration) { return duration.count(); }

enum FamilyNumber { kRatio, kJobSeconds, kMeanRepair, kRedone, kRepair, kRestarts, kRankSeconds, kFamilies };

constexpr LayoutBuilder::Family kAbout[kFamilies] = {
    {"persia_goodput_ratio", MetricType::kGauge,
     "Share of the time of all ranks of this agent since the run began that they computed steps which were kept, from 0 to 1: "
     "the bucket compute of persia_goodput_seconds_total. Of ranks that mark phases; absent if none does."},
    {"persia_goodput_seconds_total", MetricType::kCounter,
     "Time of all ranks of this agent, also of those that have left, by what they did: the sum of persia_rank_seconds_total."},
    {"persia_job_mean_time_to_repair_seconds", MetricType::kGauge,
     "Mean time from the failure of a rank's process until its successor trains new steps (MTTR). Absent until a rank has "
     "restarted."},
    {"persia_rank_redone_steps_total", MetricType::kCounter,
     "Steps that the rank trained again: of a process, those up to the highest step that the rank had reached before it. "
     "Absent while that is unknown."},
    {"persia_rank_repair_seconds_total", MetricType::kCounter,
     "Time of the rank in down, starting and redone that belongs to its restarts."},
    {"persia_rank_restarts_total", MetricType::kCounter, "Processes that replaced one of the rank that had failed."},
    {"persia_rank_seconds_total", MetricType::kCounter,
     "Time of the rank since its first process started, by what it did. All buckets together are that time, without the times "
     "between a process that finished and the next one."},
};

}  // namespace

std::shared_ptr<const Snapshot> GoodputMetrics::Collect(
    const GoodputReport& report, const std::function<std::optional<Identity>(const RankKey&)>& identity_of) {
  std::vector<const GoodputReport::Rank*> ranks;
  Shape shape{.has_total = !report.ranks.empty()};
  for (const GoodputReport::Rank& rank : report.ranks) {
    shape.marks = shape.marks || rank.marks;
    std::optional<Identity> identity = identity_of(rank.rank);
    if (!identity) continue;
    shape.ranks.emplace_back(*std::move(identity), rank.marks);
    ranks.push_back(&rank);
  }
  if (layout_ == nullptr || shape != shape_) {
    shape_ = std::move(shape);
    MakeLayout();
  }
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = layout_;
  snapshot->collected_at = std::chrono::system_clock::now();
  std::vector<double>& values = snapshot->values;
  const auto add_buckets = [&](const GoodputReport::Rank& rank) {
    for (const Bucket bucket : BucketsOf(rank.marks)) values.push_back(AsSeconds(rank.time[static_cast<size_t>(bucket)]));
  };
  if (shape_.has_total) {
    const auto repair = report.MeanRepair();
    values.push_back(report.Ratio().value_or(kAbsentValue));
    add_buckets(report.Total());
    values.push_back(repair ? repair->count() : kAbsentValue);
  }
  for (const auto* rank : ranks) {
    values.push_back(rank->redone_steps ? static_cast<double>(*rank->redone_steps) : kAbsentValue);
  }
  for (const auto* rank : ranks) values.push_back(AsSeconds(rank->repair));
  for (const auto* rank : ranks) values.push_back(static_cast<double>(rank->restarts));
  for (const auto* rank : ranks) add_buckets(*rank);
  return snapshot;
}

void GoodputMetrics::MakeLayout() {
  LayoutBuilder builder;
  const auto add_buckets = [&](const Identity& identity, FamilyNumber number, bool marks) {
    for (const Bucket bucket : BucketsOf(marks)) builder.Add(identity, kAbout[number], {{"bucket", std::string(Name(bucket))}});
  };
  if (shape_.has_total) {
    builder.Add(agent_, kAbout[kRatio]);
    add_buckets(agent_, kJobSeconds, shape_.marks);
    builder.Add(agent_, kAbout[kMeanRepair]);
  }
  for (const FamilyNumber number : {kRedone, kRepair, kRestarts}) {
    for (const auto& [identity, marks] : shape_.ranks) builder.Add(identity, kAbout[number]);
  }
  for (const auto& [identity, marks] : shape_.ranks) add_buckets(identity, kRankSeconds, marks);
  layout_ = std::move(builder).Build();
}

}  // namespace persia::agent
