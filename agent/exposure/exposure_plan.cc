#include "exposure/exposure_plan.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "exposure/definition.h"
#include "exposure/draft_layout.h"
#include "exposure/family_conflicts.h"
#include "exposure/identities.h"
#include "model/bounds.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Kind;

constexpr char kProcessLabel[] = "process";
constexpr char kReasonLabel[] = "reason";

// Reasons of newer libraries.
constexpr const char* kOtherReasons = "other";

// `{a="x",b="y"}`
std::string LabelsText(const Labels& labels) {
  std::string out = "{";
  for (const auto& [name, value] : labels) out += (out.size() > 1 ? "," : "") + name + "=\"" + value + "\"";
  return out + "}";
}

class PlanBuilder {
 public:
  PlanBuilder(std::span<const Measurements> segments, std::span<const std::shared_ptr<const Layout>> own,
              const IdentityRules& rules, const Naming& naming, const SeriesLimits& limits, Diagnostics& diagnostics)
      : segments_(segments),
        own_(own),
        naming_(naming),
        diagnostics_(diagnostics),
        max_families_(limits.families),
        identities_(rules) {
    for (const auto& layout : own_) Define(*layout);
    for (size_t i = 0; i < segments_.size(); ++i) Define(i);
    if (!first_beyond_.empty()) {
      diagnostics_.Report("limit", "series of " + first_beyond_ + " and others are left out: there are more than " +
                                       std::to_string(max_families_) + " names of metrics; use labels instead of names");
    }
    if (!segments_.empty()) {
      dropped_ = definitions_.size();
      definitions_.push_back(*DefinitionOf(SegmentFamily(), DroppedFamily(), naming_, diagnostics_));
    }
    identities_.Number();
    for (Definition& definition : definitions_)
      if (definition.segment != Definition::kNoSegment)
        definition.identity = identities_.IndexOf(definition.segment, definition.role);
  }

  ExposurePlan Build(const SeriesLimits& limits) {
    size_t own_values = 0;
    for (const auto& layout : own_) own_values += layout->value_count;
    DraftLayout draft(limits, identities_.List(), own_values);
    MakeFamilies(draft);
    AddOwn(draft);
    for (uint32_t i = 0; i < segments_.size(); ++i) AddSegment(i, draft);
    for (uint32_t i = 0; i < segments_.size(); ++i) AddSeries(i, /*removed=*/true, draft);
    return draft.Finish(diagnostics_);
  }

 private:
  // Instead of the index of a definition: the limit on families left it out.
  static constexpr size_t kBeyondLimit = SIZE_MAX;

  void Define(const Layout& own) {
    own_definitions_.push_back(definitions_.size());
    for (const Identity& identity : own.identities) identities_.Add(identity);
    for (const FamilyLayout& family : own.families) definitions_.push_back(DefinitionOf(family));
  }

  void Define(size_t index) {
    const Measurements& segment = segments_[index];
    identities_.AddSegment(*segment.identity);
    for (const std::string& text : segment.over_limit)
      diagnostics_.Report("limit", "segment " + std::string(segment.id) + ": " + text);
    std::vector<std::vector<size_t>>& of_families = by_family_.emplace_back(segment.families.size());
    std::vector<bool> has_series(segment.families.size());
    for (const SegmentSeries& series : segment.series) has_series[series.record.family] = true;
    for (size_t i = 0; i < segment.families.size(); ++i) {
      const SegmentFamily& family = segment.families[i];
      if (!has_series[i]) continue;
      for (const KindFamily& as : FamiliesOf(family.kind)) {
        std::optional<Definition> definition = DefinitionOf(family, as, naming_, diagnostics_);
        if (!definition) continue;
        if (!AdmitName(definition->exposed)) {
          of_families[i].push_back(kBeyondLimit);
          continue;
        }
        definition->segment = index;
        definition->age = segment.AgeOf(i);
        definition->role = RoleOf(*definition, *segment.identity);
        if (!definition->role.empty()) identities_.AddRole(definition->role);
        of_families[i].push_back(definitions_.size());
        definitions_.push_back(*std::move(definition));
      }
    }
  }

  // Whether the limit on families allows this name. Those that are named first stay.
  bool AdmitName(const std::string& name) {
    if (definitions_.size() < max_families_) return true;
    if (names_.empty()) {
      for (const Definition& definition : definitions_)
        if (definition.segment != Definition::kNoSegment) names_.insert(definition.exposed);
    }
    if (names_.contains(name)) return true;
    if (names_.size() >= max_families_) {
      if (first_beyond_.empty()) first_beyond_ = name;
      return false;
    }
    names_.insert(name);
    return true;
  }

  // The role that the naming sets; empty if it sets none or the process's own wins.
  static std::string RoleOf(const Definition& definition, const SegmentIdentity& process) {
    if (definition.labels_yield && !process.role.empty()) return {};
    for (const auto& [name, value] : definition.labels)
      if (name == kRoleLabel) return value;
    return {};
  }

  void MakeFamilies(DraftLayout& draft) {
    ExposedFamilies exposed = ResolveFamilies(definitions_, diagnostics_);
    placements_ = std::move(exposed.placements);
    draft.SetLeftOut(std::move(exposed.left_out));
    for (const ExposedFamily& family : exposed.families) {
      const Definition& definition = definitions_[family.definition];
      const Definition& newest = definitions_[family.newest];
      FamilyLayout layout{.name = family.name,
                          .type = definition.type,
                          .help = newest.help,
                          .unit = newest.unit,
                          .bounds = definition.bounds,
                          .series = {},
                          .native = definition.native,
                          .group = newest.group};
      std::vector<uint32_t> cuts;
      if (definition.fill == Fill::kStreamHistogram && !definition.native)
        cuts = StreamCuts(definition.bounds, definition.scale);
      draft.AddFamily(std::move(layout), definition.fill.value_or(Fill::kCounter), definition.policy, std::move(cuts),
                      definition.ttl);
    }
  }

  void AddOwn(DraftLayout& draft) {
    size_t first_value = 0;
    for (size_t i = 0; i < own_.size(); ++i) {
      const Layout& layout = *own_[i];
      std::vector<uint32_t> identities;
      for (const Identity& identity : layout.identities) identities.push_back(identities_.IndexOf(identity));
      for (size_t f = 0; f < layout.families.size(); ++f) {
        const Placement& placement = placements_[own_definitions_[i] + f];
        if (placement.family == Placement::kLeftOut) continue;  // two sources gave one name with two types: reported
        for (const SeriesLayout& series : layout.families[f].series) {
          draft.AddOwnSeries(placement.family, identities[series.identity], series.labels.ToList(),
                             first_value + series.first_value);
        }
      }
      first_value += layout.value_count;
    }
  }

  void AddSegment(uint32_t index, DraftLayout& draft) {
    AddSeries(index, /*removed=*/false, draft);
    const Measurements& segment = segments_[index];
    const uint32_t identity = identities_.IndexOf(index);
    const uint64_t birth = segment.births.empty() ? segment.birth_unix_ns : *std::ranges::min_element(segment.births);
    for (uint32_t i = 0; i <= std::size(segment::kDropNames); ++i) {
      Labels labels{{kReasonLabel, i < std::size(segment::kDropNames) ? segment::kDropNames[i] : kOtherReasons}};
      FitLabels(labels, MetricType::kCounter, identities_.List()[identity]);
      draft.AddPart(placements_[dropped_].family, identity, std::move(labels), {index, i, kNoIndex}, birth);
    }
  }

  // Adds the series that the process has removed, or the others.
  void AddSeries(uint32_t index, bool removed, DraftLayout& draft) {
    const Measurements& segment = segments_[index];
    const Presence presence = segment.ended ? (removed ? Presence::kEndedAfterRemoval : Presence::kEnded)
                                            : (removed ? Presence::kRemoved : Presence::kPresent);
    for (size_t number = 0; number < segment.series.size(); ++number) {
      const SegmentSeries& series = segment.series[number];
      if (series.record.removed != removed) continue;
      const SegmentFamily& family = segment.families[series.record.family];
      const std::vector<size_t>& definitions = by_family_[index][series.record.family];
      if (definitions.empty()) continue;
      const Labels labels = ProgramLabels(segment, series, family);
      for (const size_t definition : definitions) {
        if (definition == kBeyondLimit) {
          draft.CountByFamilyLimit();
          continue;
        }
        const Part part = PartOf(*definitions_[definition].fill, family.kind, index, series);
        AddPart(definition, labels, segment.OrdinalOf(number), part, segment.BirthOf(number), presence, draft);
      }
    }
  }

  // The labels of the series, and those of its process with other names.
  static Labels ProgramLabels(const Measurements& segment, const SegmentSeries& series, const SegmentFamily& family) {
    Labels labels;
    VisitLabels(segment.records, series.record,
                [&](std::string_view name, std::string_view value) { labels.emplace_back(name, value); });
    if (family.kind == Kind::kEvent) labels.insert(labels.end(), {{"event", family.name}, {"type", family.group}});
    const size_t own = labels.size();
    for (const auto& label : segment.identity->labels) {
      const auto end = labels.begin() + static_cast<ptrdiff_t>(own);
      if (std::none_of(labels.begin(), end, [&](const auto& other) { return other.first == label.first; }))
        labels.push_back(label);
    }
    std::sort(labels.begin(), labels.end());
    return labels;
  }

  void AddPart(size_t index, const Labels& program, uint32_t ordinal, Part part, uint64_t birth_unix_ns, Presence presence,
               DraftLayout& draft) {
    const Definition& definition = definitions_[index];
    const Placement& placement = placements_[index];
    if (placement.family == Placement::kLeftOut) {
      draft.CountByDefinition();
      return;
    }
    Labels labels = ExposedLabels(program);
    // Where several metrics share the name, a series is placed last, as one with changed labels.
    bool changed = labels != program || placement.shared;
    const auto set = [&](const std::string& name, std::string value) {
      changed |= HasLabel(labels, name);
      SetLabel(labels, name, std::move(value));
    };
    for (const auto& [name, value] : definition.labels)
      if (name != kRoleLabel && !(definition.labels_yield && HasLabel(labels, name))) set(name, value);
    if (definition.fill == Fill::kGauge && draft.policy(placement.family) == GaugePolicy::kEach)
      set(kProcessLabel, std::to_string(ordinal));
    if (placement.source_label) set(DraftLayout::kSourceLabel, SanitizeText(definition.Source()));
    changed |= FitLabels(labels, definition.type, identities_.List()[definition.identity]);
    if (changed) {
      draft.AddChangedPart(placement.family, definition.identity, std::move(labels), definition.Source() + LabelsText(program),
                           part, birth_unix_ns, definition.scale, presence);
    } else {
      draft.AddPart(placement.family, definition.identity, std::move(labels), part, birth_unix_ns, definition.scale, presence);
    }
  }

  const std::span<const Measurements> segments_;
  const std::span<const std::shared_ptr<const Layout>> own_;
  const Naming& naming_;
  Diagnostics& diagnostics_;
  const size_t max_families_;

  PlanIdentities identities_;
  std::vector<Definition> definitions_;
  std::vector<size_t> own_definitions_;                      // by own layout: index of its first definition
  std::vector<std::vector<std::vector<size_t>>> by_family_;  // by segment and family: indexes of its definitions
  std::unordered_set<std::string> names_;                    // of the segments' families, once there may be too many
  std::string first_beyond_;                                 // the first name that the limit on families left out
  size_t dropped_ = 0;                                       // index of the definition of the dropped counts
  std::vector<Placement> placements_;                        // by definition
};

}  // namespace

ExposurePlan BuildExposurePlan(std::span<const Measurements> segments, std::span<const std::shared_ptr<const Layout>> own,
                               const IdentityRules& rules, const Naming& naming, const SeriesLimits& limits,
                               Diagnostics& diagnostics) {
  return PlanBuilder(segments, own, rules, naming, limits, diagnostics).Build(limits);
}

}  // namespace persia::agent
