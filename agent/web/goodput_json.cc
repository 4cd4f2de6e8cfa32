#include "web/goodput_json.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "web/series_values.h"

namespace persia::agent {

Json GoodputJson(const Snapshot& newest) {
  const auto total = [&newest](std::string_view family) { return TotalOf(SeriesValuesOf(newest, family)); };
  const auto count = [&total](std::string_view family) { return static_cast<int64_t>(total(family).value_or(0)); };
  const auto ratio = total("persia_goodput_ratio");
  if (!ratio) return {};
  Json buckets = Json::object();
  for (const auto& [key, seconds] : SeriesValuesOf(newest, "persia_goodput_seconds_total", "bucket")) {
    buckets[key.label] = seconds;
  }
  const auto repair = total("persia_job_mean_time_to_repair_seconds");
  return {{"ratio", *ratio},
          {"bucket_seconds", std::move(buckets)},
          {"restarts", count("persia_rank_restarts_total")},
          {"redone_steps", count("persia_rank_redone_steps_total")},
          {"mean_time_to_repair_seconds", repair ? Json(*repair) : Json()}};
}

}  // namespace persia::agent
