#include "exposure/family_conflicts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "naming/naming.h"

namespace persia::agent {
namespace {

// Definitions of one exposed name, by index.
using Groups = std::map<std::string, std::vector<size_t>>;

// ", native with schema 3 from 0.001 to 1024 and at most 160 buckets, and"
std::string NativeText(const NativeBuckets& native) {
  const double range[] = {native.ZeroThreshold(),
                          metrics::segment::NativeBound(native.schema, native.first - 2 + static_cast<int>(native.buckets))};
  return ", native with schema " + std::to_string(native.schema) + " from " + BoundsText(std::span(range).first(1)) + " to " +
         BoundsText(std::span(range).last(1)) +
         (native.max_buckets > 0 ? " and at most " + std::to_string(native.max_buckets) + " buckets, and" : ", and");
}

// "a histogram with 3 bounds (0.1, 0.5, 1)"
std::string ShapeOf(const Definition& definition) {
  const bool stream = definition.fill == Fill::kStreamSum || definition.fill == Fill::kStreamHistogram;
  std::string out = stream ? "a stream's " : "a ";
  out += TypeName(definition.type);
  if (definition.type == MetricType::kHistogram) {
    constexpr size_t kShown = 8;
    const std::span<const double> bounds = definition.bounds;
    if (definition.native) out += NativeText(*definition.native);
    out += " with " + std::to_string(bounds.size()) + " bounds (" + BoundsText(bounds.first(std::min(bounds.size(), kShown))) +
           (bounds.size() > kShown ? ", ...)" : ")");
  }
  return out;
}

bool SameBuckets(const Definition& a, const Definition& b) { return a.bounds == b.bounds && a.native == b.native; }

std::string NameOf(const Definition& definition) {
  return definition.own ? "the agent's own metric"
                        : "metric (" + SanitizeText(definition.group) + ", " + SanitizeText(definition.name) + ")";
}

// REQUIRES: the group is not empty.
size_t Newest(std::span<const Definition> definitions, const std::vector<size_t>& group) {
  return *std::max_element(
      group.begin(), group.end(),
      [&](size_t a, size_t b) {
        return std::tie(definitions[a].own, definitions[a].age) < std::tie(definitions[b].own, definitions[b].age);
      });
}

// Rule 1. A prefix sorts before the longer name, so that one pass in order sees each histogram before its sample names.
void RenameSampleNames(std::span<const Definition> definitions, Groups& groups, Diagnostics& diagnostics) {
  constexpr std::array<std::string_view, 3> kSuffixes = {"_bucket", "_count", "_sum"};
  std::unordered_set<std::string> histograms;
  for (auto at = groups.begin(); at != groups.end();) {
    const std::string& name = at->first;
    std::string histogram;
    for (const std::string_view suffix : kSuffixes)
      if (name.ends_with(suffix) && histograms.contains(name.substr(0, name.size() - suffix.size())))
        histogram = name.substr(0, name.size() - suffix.size());
    if (histogram.empty()) {
      const MetricType type = definitions[Newest(definitions, at->second)].type;
      if (type == MetricType::kHistogram || type == MetricType::kSummary) histograms.insert(name);
      ++at;
      continue;
    }
    for (const size_t i : at->second) {
      const std::string renamed = name + "_" + std::string(TypeName(definitions[i].type));
      diagnostics.Report("collision", NameOf(definitions[i]) + " is exposed as " + renamed + ", since " + name +
                                          " is a sample of the histogram " + histogram + "; rename one of them");
      groups[renamed].push_back(i);
    }
    at = groups.erase(at);
  }
}

// The definitions of this type whose values come from segments.
std::vector<size_t> FilledOf(std::span<const Definition> definitions, MetricType type, const std::vector<size_t>& group) {
  std::vector<size_t> filled;
  std::ranges::copy_if(group, std::back_inserter(filled),
                       [&](size_t i) { return definitions[i].type == type && definitions[i].fill.has_value(); });
  return filled;
}

// Each metric once for each shape, whichever processes have it.
void AddLeftOut(const Definition& definition, const Definition& winner, const std::string& name,
                std::vector<LeftOutMetric>& left_out) {
  const std::string source = SanitizeText(definition.Source());
  const std::string by = winner.own || winner.Source() != definition.Source() ? SanitizeText(winner.Source()) + ", " : "";
  const LeftOutMetric fresh{source, name, ShapeOf(definition), by + ShapeOf(winner)};
  const auto same = [&](const LeftOutMetric& known) {
    return known.source == fresh.source && known.name == name && known.shape == fresh.shape && known.winner == fresh.winner;
  };
  auto found = std::ranges::find_if(left_out, same);
  if (found == left_out.end()) found = left_out.insert(left_out.end(), fresh);
  if (std::ranges::find(found->identities, definition.identity) == found->identities.end())
    found->identities.push_back(definition.identity);
}

// Rules 2 and 3.
void PlaceByShape(std::span<const Definition> definitions, const std::string& name, const std::vector<size_t>& group,
                  ExposedFamilies& out, Diagnostics& diagnostics) {
  const size_t newest = Newest(definitions, group);
  std::map<uint32_t, std::vector<size_t>> by_identity;
  const auto leave_out = [&](const Definition& definition, const Definition& winner) {
    diagnostics.Report("conflict", NameOf(definition) + " is left out as " + ShapeOf(definition) + ": under the name " + name +
                                       " the newest definition, " + NameOf(winner) + ", is " + ShapeOf(winner) +
                                       "; rename one of them");
    if (!definition.own) AddLeftOut(definition, winner, name, out.left_out);
  };
  const MetricType type = definitions[newest].type;
  const std::vector<size_t> filled = FilledOf(definitions, type, group);
  const Definition& filler = definitions[filled.empty() ? newest : Newest(definitions, filled)];
  const auto fits = [&](const Definition& definition) {
    const bool same_fill = !definition.fill || definition.fill == filler.fill;
    // The bounds of a family of the agent's own hold for all identities.
    return definition.type == type && same_fill && (definitions[newest].fill || SameBuckets(definition, definitions[newest]));
  };
  for (const size_t i : group)
    if (fits(definitions[i]))
      by_identity[definitions[i].identity].push_back(i);
    else
      leave_out(definitions[i], definitions[newest]);
  std::map<std::pair<std::vector<double>, std::optional<NativeBuckets>>, std::vector<size_t>> by_bounds;
  for (const auto& [identity, of_identity] : by_identity) {
    const Definition& winner = definitions[Newest(definitions, of_identity)];
    for (const size_t i : of_identity)
      if (SameBuckets(definitions[i], winner))
        by_bounds[{winner.bounds, winner.native}].push_back(i);
      else
        leave_out(definitions[i], winner);
  }
  for (const auto& [bounds, of_bounds] : by_bounds) {
    for (const size_t i : of_bounds) out.placements[i].family = out.families.size();
    const std::vector<size_t> filled_of_bounds = FilledOf(definitions, type, of_bounds);
    out.families.push_back({name, Newest(definitions, filled_of_bounds.empty() ? of_bounds : filled_of_bounds), newest});
  }
}

// Rule 4.
void AddSourceLabels(std::span<const Definition> definitions, const std::string& name, const std::vector<size_t>& group,
                     std::vector<Placement>& placements, Diagnostics& diagnostics) {
  using Source = std::pair<std::string_view, std::string_view>;  // group and name
  std::map<Labels, std::set<Source>> sources;                    // by the labels set by the naming
  bool own = false;
  for (const size_t i : group) {
    const Definition& definition = definitions[i];
    if (placements[i].family == Placement::kLeftOut) continue;
    own |= definition.own;
    if (!definition.own) sources[definition.labels].emplace(definition.group, definition.name);
  }
  for (const size_t i : group) {
    const Definition& definition = definitions[i];
    if (placements[i].family == Placement::kLeftOut || definition.own) continue;
    placements[i].shared = sources.size() > 1;
    if (own || *sources.at(definition.labels).begin() != Source(definition.group, definition.name)) {
      placements[i].source_label = true;
      diagnostics.Report("collision", NameOf(definition) + " gets a label source: another metric is exposed as " + name +
                                          " too; rename one of them");
    }
  }
}

}  // namespace

ExposedFamilies ResolveFamilies(std::span<const Definition> definitions, Diagnostics& diagnostics) {
  Groups groups;
  for (size_t i = 0; i < definitions.size(); ++i) groups[definitions[i].exposed].push_back(i);
  RenameSampleNames(definitions, groups, diagnostics);

  ExposedFamilies out;
  out.placements.resize(definitions.size());
  for (const auto& [name, group] : groups) {
    PlaceByShape(definitions, name, group, out, diagnostics);
    AddSourceLabels(definitions, name, group, out.placements, diagnostics);
  }
  return out;
}

}  // namespace persia::agent
