#include "web/losses.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "health/phrases.h"

namespace persia::agent {
namespace {

using Reason = HealthReport::Reason;

constexpr std::string_view kOfMetric = "persia_metrics_lost_total";

// What the counter or gauge of a reason counts, and why it was lost. `one` and `many` take the metric's name after `of`.
struct LossKind {
  std::string_view family;
  std::string_view reason;  // the value of its label `reason` or `result`
  std::string_view one;
  std::string_view many;
  std::string_view of;
  std::string_view done;
  std::string_view why;
};

constexpr std::string_view kDropped = "persia_metrics_dropped_total";
constexpr std::string_view kLeftOut = "persia_agent_dropped_series";
constexpr std::string_view kRefused = "persia_agent_quarantined_series";
constexpr LossKind kKinds[] = {
    {kDropped, "bad_value", "value", "values", " of ", "lost",
     "a counter takes no NaN and no negative number, a histogram no NaN; a gauge takes both"},
    {kDropped, "type_conflict", "request", "requests", " for ", "refused",
     "its process has it with another type, merge policy or bounds; give it one, or another name"},
    {kDropped, "bad_name", "request", "requests", " for ", "refused",
     "a name has 1 to 256 bytes, a label's value at most 4096, and a metric at most 32 labels, each once; correct the call"},
    {kDropped, "bad_bounds", "request", "requests", " for ", "refused",
     "a histogram has 1 to 500 ascending, finite bounds; correct them"},
    {kDropped, "segment_full", "request", "requests", " for ", "refused",
     "the segment of the process is full; use fewer label values, or raise PERSIA_METRICS_SEGMENT_BYTES"},
    {kDropped, "out_of_memory", "value", "values", " of ", "lost", "the process had no memory left"},
    {kLeftOut, "max_series", "series", "series", "", "left out", "the job has more than max_series; use fewer label values"},
    {kLeftOut, "max_series_per_instance", "series", "series", "", "left out",
     "an instance has more than max_series_per_instance; use fewer label values"},
    {kLeftOut, "label_value_bytes", "series", "series", "", "left out",
     "a label's value is longer than 1,024 bytes; shorten it"},
    {kLeftOut, "families", "series", "series", "", "left out",
     "the job has more than 20,000 metrics; use labels instead of names"},
    {kLeftOut, "push_bytes", "series", "series", "", "left out of pushes",
     "a group is larger than 64 MiB, or than a proxy before the gateway takes; give its metrics fewer label values"},
    {kRefused, "gateway", "series", "series", "", "left out of pushes",
     "the gateway refuses them, mostly since another job has the name with another type; the log names them"},
    {kRefused, "collision", "series", "series", "", "left out", "another series has the same name and labels; rename a label"},
    {"persia_agent_fifo_lines_total", "bad", "line", "lines", "", "of emit lost",
     "not in the format of emit; the log says why"},
};

// By identity; those that lost none are left out.
using Counts = std::map<Identity, double>;
// By metric, which may be empty, and reason.
using LossKey = std::pair<std::string, std::string>;

std::map<LossKey, Counts> LossesOf(const Snapshot& snapshot, std::string_view name) {
  std::map<LossKey, Counts> counts;
  for (const FamilyLayout& family : FamiliesNamed(*snapshot.layout, name)) {
    if (family.ValuesPerSeries() != 1) continue;
    for (const SeriesLayout& series : family.series) {
      const double value = snapshot.values[series.first_value];
      if (!(value > 0)) continue;
      LossKey key;
      for (const auto& [label, of] : series.labels) {
        if (label == "metric") key.first = of;
        if (label == "reason" || label == "result") key.second = of;
      }
      counts[key][snapshot.layout->identities[series.identity]] += value;
    }
  }
  return counts;
}

// " on trainer rep_3", " in 64 ranks". Nothing is said of what the agent itself counts.
std::string PlaceText(const std::vector<Identity>& ranks) {
  if (ranks.empty() || LabelValueOf(ranks.front(), "role") == "agent") return "";
  return ranks.size() == 1 ? " on " + RankName(ranks.front()) : " in " + std::to_string(ranks.size()) + " ranks";
}

Reason Lost(std::string text, const std::vector<Identity>& ranks) {
  Reason reason{"lost", std::move(text)};
  if (ranks.size() == 1 && !PlaceText(ranks).empty())
    reason.worker = {LabelValueOf(ranks.front(), "role"), LabelValueOf(ranks.front(), "instance"), "0"};
  return reason;
}

// REQUIRES: `counts` is not empty.
Reason ReasonOf(const LossKind& kind, const std::string& metric, const Counts& counts) {
  std::vector<Identity> ranks;
  double sum = 0;
  for (const auto& [identity, count] : counts) {
    ranks.push_back(identity);
    sum += count;
  }
  std::string text = std::to_string(std::llround(sum)) + " " + std::string(sum == 1 ? kind.one : kind.many);
  if (!metric.empty()) text += std::string(kind.of) + metric;
  return Lost(text + " " + std::string(kind.done) + PlaceText(ranks) + ": " + std::string(kind.why), ranks);
}

Reason ReasonOf(const LeftOutMetric& metric, const Layout& layout) {
  std::vector<Identity> ranks;
  for (const uint32_t identity : metric.identities) ranks.push_back(layout.identities[identity]);
  return Lost(metric.source + " (" + metric.name + ") left out" + PlaceText(ranks) + ": it is " + metric.shape +
                  " there, and the newest " + metric.name + " is " + metric.winner + "; give it one type, or another name",
              ranks);
}

}  // namespace

std::vector<Reason> LossesIn(const Snapshot& snapshot) {
  std::vector<Reason> losses;
  const std::map<LossKey, Counts> named = LossesOf(snapshot, kOfMetric);
  std::map<std::string_view, std::map<LossKey, Counts>> families;
  for (const LossKind& kind : kKinds) {
    if (!families.contains(kind.family)) families.emplace(kind.family, LossesOf(snapshot, kind.family));
    Counts rest = families.at(kind.family)[{"", std::string(kind.reason)}];
    for (const auto& [key, counts] : named) {
      if (kind.family != kDropped || key.second != kind.reason) continue;
      losses.push_back(ReasonOf(kind, key.first, counts));
      for (const auto& [identity, count] : counts) rest[identity] -= count;
    }
    std::erase_if(rest, [](const auto& each) { return !(each.second > 0); });
    if (!rest.empty()) losses.push_back(ReasonOf(kind, "", rest));
  }
  for (const LeftOutMetric& metric : snapshot.layout->left_out) losses.push_back(ReasonOf(metric, *snapshot.layout));
  if (losses.size() > HealthReport::kMaxReasons) losses.resize(HealthReport::kMaxReasons);
  return losses;
}

}  // namespace persia::agent
