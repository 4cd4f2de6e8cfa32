#include "health/not_finite.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "health/phrases.h"
#include "health/rank.h"
#include "model/events.h"

namespace persia::agent {
namespace {

// Of the rank's main process: the exposed identity has labels of the settings, too.
std::optional<double> StepOf(const Identity& identity, std::span<const Process> processes) {
  const auto found = std::ranges::find_if(processes, [&](const Process& process) {
    return process.ordinal == 0 && LabelValueOf(process.identity, "role") == LabelValueOf(identity, "role") &&
           LabelValueOf(process.identity, "instance") == LabelValueOf(identity, "instance");
  });
  return found == processes.end() ? std::nullopt : found->step;
}

constexpr const char* kNanText = "NaN";

bool IsJudged(const FamilyLayout& family) { return family.type == MetricType::kGauge && !family.group.empty(); }

}  // namespace

std::string NotFiniteText(double value) {
  if (std::isnan(value)) return kNanText;
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return "";
}

std::string SentenceOf(const NotFiniteValue& value, size_t others) {
  std::string text = value.family;
  for (const auto& [name, of] : value.labels) text += " " + name + "=" + of;
  text += " is " + value.value + " on " + RankName(value.identity);
  if (others > 0) text += " and " + std::to_string(others) + (others == 1 ? " other" : " others");
  return value.step ? text + ", since step " + StepText(*value.step) : text;
}

void NotFiniteJudge::Look(const Snapshot& snapshot, std::span<const Process> processes, TimePoint now) {
  Known found;
  for (const FamilyLayout& family : snapshot.layout->families) {
    if (!IsJudged(family)) continue;
    for (const SeriesLayout& series : family.series) {
      const double value = snapshot.values[series.first_value];
      if (std::isfinite(value) || IsAbsent(value)) continue;
      const Identity& identity = snapshot.layout->identities[series.identity];
      Key key{family.name, identity, series.labels.ToList()};
      const auto before = known_.find(key);
      if (before != known_.end()) {
        NotFiniteValue& same = found.emplace(std::move(key), before->second).first->second;
        same.value = NotFiniteText(value);
        continue;
      }
      NotFiniteValue fresh{.family = family.name,
                           .identity = identity,
                           .labels = key.labels,
                           .value = NotFiniteText(value),
                           .since = now,
                           .step = StepOf(identity, processes)};
      found.emplace(std::move(key), std::move(fresh));
    }
  }
  if (found.empty() && known_.empty()) return;
  ReportNew(found);
  ReportGone(found, snapshot, now);
  known_ = std::move(found);
  auto report = std::make_shared<NotFiniteReport>();
  nan_counts_.clear();
  for (const auto& [key, value] : known_) {
    report->values.push_back(value);
    if (value.value == kNanText) ++nan_counts_[{key.identity, key.family}];
    auto& families = report->families;
    if (families.empty() || families.back().first.family != value.family) {
      families.push_back({value});
    } else {
      ++families.back().others;
      if (value.since < families.back().first.since) families.back().first = value;
    }
  }
  std::ranges::stable_sort(report->values, {}, &NotFiniteValue::since);
  std::ranges::stable_sort(report->families, {}, [](const NotFiniteReport::Family& family) { return family.first.since; });
  report->values.resize(std::min(report->values.size(), NotFiniteReport::kMost));
  report->families.resize(std::min(report->families.size(), NotFiniteReport::kMostFamilies));
  report_ = std::move(report);
}

// One event for each family that had none.
void NotFiniteJudge::ReportNew(const Known& found) {
  std::set<std::string_view> told;
  for (const auto& [key, value] : known_) told.insert(key.family);
  for (const auto& [key, value] : found) {
    if (!told.insert(key.family).second) continue;
    const auto of_family =
        std::ranges::count_if(found, [&family = key.family](const auto& one) { return one.first.family == family; });
    JobEvent& event = events_.emplace_back(LoggedAgentEvent(
        LogLevel::kWarning, "value_not_finite", SentenceOf(value, static_cast<size_t>(of_family) - 1), value.since));
    event.identity = value.identity;
    event.metadata.emplace_back("metric", value.family);
    event.metadata.emplace_back("value", value.value);
    if (value.step) event.metadata.emplace_back("step", *value.step);
  }
}

void NotFiniteJudge::ReportGone(const Known& found, const Snapshot& snapshot, TimePoint now) {
  std::set<std::string_view> told;
  for (const auto& [key, value] : found) told.insert(key.family);
  for (const auto& [key, value] : known_) {
    if (!told.insert(key.family).second) continue;
    const auto families = FamiliesNamed(*snapshot.layout, key.family);
    const bool is_exposed = std::ranges::any_of(families, [&snapshot, &of = key](const FamilyLayout& family) {
      return std::ranges::any_of(family.series, [&snapshot, &of](const SeriesLayout& series) {
        return snapshot.layout->identities[series.identity] == of.identity && series.labels.ToList() == of.labels &&
               !IsAbsent(snapshot.values[series.first_value]);
      });
    });
    if (!is_exposed) continue;
    JobEvent& event = events_.emplace_back(LoggedAgentEvent(
        LogLevel::kInfo, "value_finite", value.family + " on " + RankName(value.identity) + " is a number again", now));
    event.identity = value.identity;
    event.metadata.emplace_back("metric", value.family);
  }
}

}  // namespace persia::agent
