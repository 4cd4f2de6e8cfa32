#include "source/family_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "model/naming.h"

namespace persia::agent {
namespace {

// Definitions of one exposed name, by index.
using Groups = std::map<std::string, std::vector<size_t>>;

std::string_view TypeWord(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
    case MetricType::kSummary:
      return "summary";
    case MetricType::kUntyped:
      return "untyped";
  }
  return "untyped";
}

std::string BoundText(double value) {
  std::array<char, 32> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

// "a histogram with 3 bounds (0.1, 0.5, 1)"
std::string Shape(const Definition& definition) {
  std::string out = "a ";
  out += TypeWord(definition.type);
  if (definition.type == MetricType::kHistogram) {
    constexpr size_t kShown = 8;
    out += " with " + std::to_string(definition.bounds.size()) + " bounds (";
    for (size_t i = 0; i < definition.bounds.size() && i < kShown; ++i) {
      out += (i > 0 ? ", " : "") + BoundText(definition.bounds[i]);
    }
    out += definition.bounds.size() > kShown ? ", ...)" : ")";
  }
  return out;
}

std::string Who(const Definition& definition) {
  return definition.own ? "the agent's own metric"
                        : "metric (" + SanitizeText(definition.group) + ", " + SanitizeText(definition.name) + ")";
}

bool SameShape(const Definition& a, const Definition& b) { return a.type == b.type && a.bounds == b.bounds; }

// The definition that counts. REQUIRES: there is one.
size_t Newest(std::span<const Definition> definitions, const std::vector<size_t>& group) {
  return *std::max_element(group.begin(), group.end(), [&](size_t a, size_t b) {
    return std::tie(definitions[a].own, definitions[a].age) < std::tie(definitions[b].own, definitions[b].age);
  });
}

// Rule 1. A prefix sorts before the name, and a name before its renaming, so one walk in order sees each in its final place.
void TellSampleNamesApart(std::span<const Definition> definitions, Groups& groups, Diagnostics& diagnostics) {
  constexpr std::array<std::string_view, 3> kSuffixes = {"_bucket", "_count", "_sum"};
  std::unordered_set<std::string> histograms;
  for (auto at = groups.begin(); at != groups.end();) {
    const std::string& name = at->first;
    std::string histogram;
    for (const std::string_view suffix : kSuffixes) {
      if (name.ends_with(suffix) && histograms.contains(name.substr(0, name.size() - suffix.size()))) {
        histogram = name.substr(0, name.size() - suffix.size());
      }
    }
    if (histogram.empty()) {
      const MetricType type = definitions[Newest(definitions, at->second)].type;
      if (type == MetricType::kHistogram || type == MetricType::kSummary) {
        histograms.insert(name);
      }
      ++at;
      continue;
    }
    for (const size_t i : at->second) {
      const std::string renamed = name + "_" + std::string(TypeWord(definitions[i].type));
      diagnostics.Report("collision", Who(definitions[i]) + " is exposed as " + renamed + ", since " + name +
                                          " is a sample of the histogram " + histogram + "; rename one of them");
      groups[renamed].push_back(i);
    }
    at = groups.erase(at);
  }
}

}  // namespace

ExposedFamilies ResolveFamilies(std::span<const Definition> definitions, Diagnostics& diagnostics) {
  Groups groups;
  for (size_t i = 0; i < definitions.size(); ++i) {
    groups[definitions[i].exposed].push_back(i);
  }
  TellSampleNamesApart(definitions, groups, diagnostics);

  ExposedFamilies out;
  out.placements.resize(definitions.size());
  for (const auto& [name, group] : groups) {
    const size_t newest = Newest(definitions, group);
    std::map<Labels, std::set<std::pair<std::string_view, std::string_view>>> sources;  // by the naming's labels
    bool own = false;
    for (const size_t i : group) {
      const Definition& definition = definitions[i];
      if (!SameShape(definition, definitions[newest])) {
        diagnostics.Report("conflict", Who(definition) + " is left out as " + Shape(definition) + ": under the name " + name +
                                           " the newest definition, " + Who(definitions[newest]) + ", is " +
                                           Shape(definitions[newest]) + "; give one of them another name");
        continue;
      }
      out.placements[i].family = out.families.size();
      own |= definition.own;
      if (!definition.own) {
        sources[definition.labels].emplace(definition.group, definition.name);
      }
    }
    for (const size_t i : group) {
      const Definition& definition = definitions[i];
      if (out.placements[i].family == Placement::kLeftOut || definition.own) {
        continue;
      }
      out.placements[i].shared = sources.size() > 1;
      const auto& first = *sources.at(definition.labels).begin();
      if (own || first != std::pair<std::string_view, std::string_view>(definition.group, definition.name)) {
        out.placements[i].source_label = true;
        diagnostics.Report("collision", Who(definition) + " is told apart by a label source: another one is exposed as " +
                                            name + " too; rename one of them");
      }
    }
    out.families.push_back({name, newest});
  }
  return out;
}

}  // namespace persia::agent
