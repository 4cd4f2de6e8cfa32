#include "source/merge_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "model/stream_bounds.h"
#include "source/draft_layout.h"
#include "source/family_table.h"
#include "source/plan_identities.h"
#include "source/show.h"
#include "source/stream_totals.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Kind;

constexpr char kProcessLabel[] = "process";
constexpr char kReasonLabel[] = "reason";

// By segment::Drop; what a newer library counts beyond them goes to the last one.
constexpr const char* kDropReasons[] = {"bad_value",       "bad_name",      "bad_bounds",      "type_conflict", "segment_full",
                                        "filesystem_full", "event_overrun", "event_truncated", "other"};
static_assert(std::size(kDropReasons) == static_cast<size_t>(segment::Drop::kCount) + 1);

// `{a="x",b="y"}`, for a label's value.
std::string Braced(const Labels& labels) {
  std::string out = "{";
  for (const auto& [name, value] : labels) {
    out += (out.size() > 1 ? "," : "") + name + "=\"" + value + "\"";
  }
  return out + "}";
}

// `0.5, 1, 2`
std::string Listed(std::span<const double> numbers) {
  std::string out;
  for (const double number : numbers) {
    std::array<char, 32> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    out += (out.empty() ? "" : ", ") + std::string(text.data(), end);
  }
  return out;
}

class PlanBuilder {
 public:
  PlanBuilder(std::span<const MergeInput> segments, const MergeIdentity& identity, const Naming& naming,
              const SeriesLimits& limits, Diagnostics& diagnostics)
      : segments_(segments), identity_(identity), naming_(naming), diagnostics_(diagnostics), draft_(limits) {}

  MergePlan Build() {
    Define();
    identities_.Number(identity_);
    MakeFamilies();
    for (uint32_t i = 0; i < segments_.size(); ++i) {
      AddSegment(i);
    }
    return draft_.Finish(identities_.Take(), diagnostics_);
  }

 private:
  void Define() {
    for (const MergeInput& segment : segments_) {
      first_definitions_.emplace_back();
      identities_.AddSegment(*segment.identity);
      for (size_t i = 0; i < segment.families.size(); ++i) {
        first_definitions_.back().push_back(definitions_.size());
        if (!segment.families[i].known) {
          continue;
        }
        for (const Show& show : ShowsOf(segment.families[i].kind)) {
          AddDefinition(show, segment.families[i], segment.AgeOf(i));
        }
        if (definitions_.size() > first_definitions_.back().back()) {
          AddRole(segment, first_definitions_.back().back());
        }
      }
      end_of_definitions_.push_back(definitions_.size());
    }
    if (!segments_.empty()) {
      AddDefinition(DroppedShow(), {}, {});
    }
  }

  // Where the naming gives a role and the process's own does not stand, the family's series belong to that role.
  void AddRole(const MergeInput& segment, size_t definition) {
    const auto& exposed = exposed_[definition];
    if (exposed == nullptr || (exposed->labels_yield && !segment.identity->role.empty())) {
      return;
    }
    for (const auto& [name, value] : exposed->labels) {
      if (name == kRoleLabel) {
        identities_.AddRole(value);
        role_of_[definition] = value;
      }
    }
  }

  void AddDefinition(Show show, const SegmentFamily& family, FamilyAge age) {
    std::shared_ptr<const Exposed> exposed;
    if (show.own_name == nullptr) {
      exposed = naming_.Expose({family.group, family.name, show.type});
      if (exposed->drop) {
        return;
      }
      if (family.kind == Kind::kStream) {
        show = StreamShow(exposed->type);
      }
    }
    Definition definition;
    definition.own = show.own_name != nullptr;
    definition.type = show.type;
    definition.policy = family.policy;
    definition.age = std::move(age);
    if (show.fill == Fill::kDistribution) {
      definition.bounds = family.bounds;
    }
    if (definition.own) {
      definition.exposed = show.own_name;
      definition.help = show.help;
    } else {
      definition.group = family.group;
      definition.name = family.name;
      definition.exposed = exposed->name;
      definition.labels = exposed->labels;
      definition.help = exposed->help.empty() ? SanitizeText(family.help) : exposed->help;
      definition.scale = Scale(exposed->scale);
      definition.unit = definition.scale.is_one() ? SanitizeText(family.unit) : "";
      if (show.fill == Fill::kStreamHistogram) {
        SnapBounds(definition, *exposed);
      } else if (show.fill == Fill::kStreamSummary) {
        definition.bounds = exposed->quantiles;
      } else {
        ScaleBounds(definition);
      }
    }
    definitions_.push_back(std::move(definition));
    fills_.push_back(show.fill);
    ttls_.push_back(family.kind == Kind::kStream ? exposed->ttl : std::nullopt);
    exposed_.push_back(std::move(exposed));
  }

  // To where the stream has counts.
  void SnapBounds(Definition& definition, const Exposed& exposed) {
    definition.bounds = SnapToStreamBounds(exposed.bounds, definition.scale);
    if (definition.bounds != exposed.bounds) {
      diagnostics_.Report("bounds", "the histogram " + definition.exposed + " has the bounds " + Listed(definition.bounds) +
                                        " instead of " + Listed(exposed.bounds) +
                                        ": they are where its stream counts, so that each count is exact");
    }
  }

  void ScaleBounds(Definition& definition) {
    std::vector<double> scaled = definition.bounds;
    for (double& bound : scaled) {
      bound = definition.scale.Apply(bound);
    }
    const bool good = std::adjacent_find(scaled.begin(), scaled.end(), std::greater_equal<>()) == scaled.end() &&
                      std::all_of(scaled.begin(), scaled.end(), [](double bound) { return std::isfinite(bound); });
    if (good) {
      definition.bounds = std::move(scaled);
      return;
    }
    definition.scale = Scale();
    diagnostics_.Report("conflict",
                        "the histogram " + definition.exposed +
                            " is shown without the scale of its rule, by which bounds of it become one or infinite");
  }

  void MakeFamilies() {
    ExposedFamilies exposed = ResolveFamilies(definitions_, diagnostics_);
    placements_ = std::move(exposed.placements);
    for (const ExposedFamily& family : exposed.families) {
      const Definition& definition = definitions_[family.definition];
      FamilyLayout layout;
      layout.name = family.name;
      layout.type = definition.type;
      layout.help = definition.help;
      layout.unit = definition.unit;
      layout.bounds = definition.bounds;
      const Fill fill = fills_[family.definition];
      std::vector<uint32_t> cuts;
      if (fill == Fill::kStreamHistogram) {
        cuts = StreamCuts(definition.bounds, definition.scale);
      }
      draft_.AddFamily(std::move(layout), fill, definition.policy, std::move(cuts), ttls_[family.definition]);
    }
  }

  void AddSegment(uint32_t index) {
    const MergeInput& segment = segments_[index];
    Labels raw;
    for (size_t number = 0; number < segment.series.size(); ++number) {
      const SegmentSeries& series = segment.series[number];
      const SegmentFamily& family = segment.families[series.record.family];
      raw.clear();
      VisitLabels(segment.records, series.record,
                  [&](std::string_view name, std::string_view value) { raw.emplace_back(name, value); });
      if (family.kind == Kind::kEvent) {
        raw.insert(raw.end(), {{"event", family.name}, {"type", family.group}});
        std::sort(raw.begin(), raw.end());
      }
      // A series' own label wins over its process's.
      const size_t own = raw.size();
      for (const auto& label : segment.identity->labels) {
        const auto same = [&](const auto& other) { return other.first == label.first; };
        if (std::none_of(raw.begin(), raw.begin() + static_cast<ptrdiff_t>(own), same)) {
          raw.push_back(label);
        }
      }
      std::sort(raw.begin(), raw.end());
      const std::span<const Show> shows = ShowsOf(family.kind);
      for (size_t i = 0; i < shows.size(); ++i) {
        const size_t definition = first_definitions_[index][series.record.family] + i;
        if (Dropped(definition, index, series.record.family)) {
          break;
        }
        AddSeries(definition, index, raw, segment.OrdinalOf(number), PartOf(fills_[definition], family.kind, index, series));
      }
    }
    const Placement& dropped = placements_.back();
    for (uint32_t i = 0; i < std::size(kDropReasons); ++i) {
      draft_.AddPart(dropped.family, identities_.IndexOf(index), {{kReasonLabel, kDropReasons[i]}}, {index, i, kNoPlace});
    }
  }

  // Whether the naming has left out the family, so that there is no definition for it.
  bool Dropped(size_t definition, uint32_t segment, size_t family) const {
    const std::vector<size_t>& first = first_definitions_[segment];
    return definition == (family + 1 < first.size() ? first[family + 1] : end_of_definitions_[segment]);
  }

  void AddSeries(size_t definition_index, uint32_t segment_index, const Labels& raw, uint32_t ordinal, Part part) {
    const Placement& placement = placements_[definition_index];
    if (placement.family == Placement::kLeftOut) {
      draft_.CountByDefinition();
      return;
    }
    const Definition& definition = definitions_[definition_index];
    Labels labels = ExposedLabels(raw);
    // What the naming adds is not what the program said: beside other metrics of the name it might say the same as theirs.
    bool changed = labels != raw || placement.shared;
    const auto set = [&](const char* name, std::string value) {
      changed |= std::any_of(labels.begin(), labels.end(), [&](const auto& label) { return label.first == name; });
      SetLabel(labels, name, std::move(value));
    };
    for (const auto& [name, value] : definition.labels) {
      const auto same = [&name = name](const auto& label) { return label.first == name; };
      const bool yields = exposed_[definition_index]->labels_yield && std::any_of(labels.begin(), labels.end(), same);
      if (name != kRoleLabel && !yields) {
        set(name.c_str(), value);
      }
    }
    if (fills_[definition_index] == Fill::kGauge && draft_.policy(placement.family) == GaugePolicy::kEach) {
      set(kProcessLabel, std::to_string(ordinal));
    }
    const std::string source = definition.own ? definition.exposed : definition.group + "/" + definition.name;
    if (placement.source_label) {
      set(DraftLayout::kSourceLabel, SanitizeText(source));
    }
    const auto role = role_of_.find(definition_index);
    const uint32_t identity = identities_.IndexOf(segment_index, role == role_of_.end() ? "" : role->second);
    if (changed) {
      draft_.AddChangedPart(placement.family, identity, std::move(labels), source + Braced(raw), part, definition.scale);
    } else {
      draft_.AddPart(placement.family, identity, std::move(labels), part, definition.scale);
    }
  }

  const std::span<const MergeInput> segments_;
  const MergeIdentity& identity_;
  const Naming& naming_;
  Diagnostics& diagnostics_;

  PlanIdentities identities_;
  std::vector<Definition> definitions_;                         // the last one is of the dropped counts
  std::vector<Fill> fills_;                                     // by definition
  std::vector<std::optional<std::chrono::milliseconds>> ttls_;  // by definition; of streams alone
  std::vector<std::shared_ptr<const Exposed>> exposed_;         // by definition; null for the agent's own
  std::unordered_map<size_t, std::string> role_of_;             // by definition, where the naming gives one
  std::vector<std::vector<size_t>> first_definitions_;          // by segment and family
  std::vector<size_t> end_of_definitions_;                      // by segment
  std::vector<Placement> placements_;                           // by definition
  DraftLayout draft_;
};

}  // namespace

MergePlan BuildMergePlan(std::span<const MergeInput> segments, const MergeIdentity& identity, const Naming& naming,
                         const SeriesLimits& limits, Diagnostics& diagnostics) {
  return PlanBuilder(segments, identity, naming, limits, diagnostics).Build();
}

}  // namespace persia::agent
