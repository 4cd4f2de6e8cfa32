#include "web/goodput_json.h"

#include <chrono>
#include <string>
#include <utility>

namespace persia::agent {
namespace {

double AsSeconds(std::chrono::duration<double> duration) { return duration.count(); }

}  // namespace

Json GoodputJson(const GoodputReport& report) {
  const auto ratio = report.Ratio();
  if (!ratio) return {};
  const GoodputReport::Rank counted = report.TotalOfMarking(true);
  Json buckets = Json::object();
  for (size_t i = 0; i < kBuckets; ++i) buckets[std::string(Name(static_cast<Bucket>(i)))] = AsSeconds(counted.time[i]);
  const GoodputReport::Rank all = report.Total();
  const auto repair = report.MeanRepair();
  return {{"ratio", *ratio},
          {"bucket_seconds", std::move(buckets)},
          {"seconds_without_phases", AsSeconds(report.TotalOfMarking(false).AllTime())},
          {"restarts", all.restarts},
          {"redone_steps", all.redone_steps ? Json(*all.redone_steps) : Json()},
          {"mean_time_to_repair_seconds", repair ? Json(repair->count()) : Json()}};
}

}  // namespace persia::agent
