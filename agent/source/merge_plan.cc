#include "source/merge_plan.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "source/draft_layout.h"
#include "source/family_table.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Kind;

constexpr char kProcessLabel[] = "process";
constexpr char kReasonLabel[] = "reason";
constexpr uint32_t kNoPlace = SegmentSeries::kNoPlace;

// By segment::Drop; what a newer library counts beyond them goes to the last one.
constexpr const char* kDropReasons[] = {"bad_value",       "bad_name",      "bad_bounds",      "type_conflict", "segment_full",
                                        "filesystem_full", "event_overrun", "event_truncated", "other"};
static_assert(std::size(kDropReasons) == static_cast<size_t>(segment::Drop::kCount) + 1);

// The families that a segment's family becomes.
struct Show {
  Fill fill;
  MetricType type;
  const char* own_name;  // null: named after the program's metric
  const char* help;
};
constexpr Show kCounterShows[] = {{Fill::kCounter, MetricType::kCounter, nullptr, nullptr}};
constexpr Show kGaugeShows[] = {{Fill::kGauge, MetricType::kGauge, nullptr, nullptr}};
constexpr Show kStreamShows[] = {{Fill::kGauge, MetricType::kGauge, nullptr, nullptr}};
constexpr Show kHistogramShows[] = {{Fill::kDistribution, MetricType::kHistogram, nullptr, nullptr}};
constexpr Show kEventShows[] = {
    {Fill::kCounter, MetricType::kCounter, "persia_events_total", "Events that the job recorded."},
    {Fill::kTimestamp, MetricType::kGauge, "persia_event_last_timestamp_seconds",
     "When the job last recorded the event, in seconds since 1970."},
    {Fill::kDistribution, MetricType::kHistogram, "persia_event_interval_seconds",
     "Time between two of the event in one process, in seconds."},
};
constexpr Show kDroppedShow = {Fill::kDropped, MetricType::kCounter, "persia_metrics_dropped_total",
                               "What the job's processes could not record, by reason."};

std::span<const Show> ShowsOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return kCounterShows;
    case Kind::kGauge:
      return kGaugeShows;
    case Kind::kHistogram:
      return kHistogramShows;
    case Kind::kEvent:
      return kEventShows;
    case Kind::kStream:
      return kStreamShows;
  }
  return {};
}

Part PartOf(Fill fill, Kind kind, uint32_t segment, const SegmentSeries& series) {
  const bool event = kind == Kind::kEvent;
  switch (fill) {
    case Fill::kCounter:
      // An event's count is whole, and stands behind its timestamp.
      return event ? Part{segment, series.whole + 1, kNoPlace} : Part{segment, series.whole, series.real};
    case Fill::kDistribution:
      return {segment, series.whole + (event ? 3 : 1), series.real};
    case Fill::kGauge:
    case Fill::kTimestamp:
      return {segment, series.common, kNoPlace};
    case Fill::kDropped:
      break;
  }
  return {segment, 0, kNoPlace};
}

// `{a="x",b="y"}`, for a label's value.
std::string Braced(const Labels& labels) {
  std::string out = "{";
  for (const auto& [name, value] : labels) {
    out += (out.size() > 1 ? "," : "") + name + "=\"" + value + "\"";
  }
  return out + "}";
}

class PlanBuilder {
 public:
  PlanBuilder(std::span<const MergeInput> segments, const MergeIdentity& identity, const Naming& naming,
              const SeriesLimits& limits, Diagnostics& diagnostics)
      : segments_(segments), identity_(identity), naming_(naming), diagnostics_(diagnostics), draft_(limits) {}

  MergePlan Build() {
    FindIdentities();
    Define();
    MakeFamilies();
    for (uint32_t i = 0; i < segments_.size(); ++i) {
      AddSegment(i);
    }
    return draft_.Finish(std::move(identities_), diagnostics_);
  }

 private:
  void FindIdentities() {
    std::vector<Identity> all;
    for (const MergeInput& segment : segments_) {
      all.push_back(ExposedIdentity(*segment.identity, identity_));
    }
    identities_ = all;
    std::sort(identities_.begin(), identities_.end());
    identities_.erase(std::unique(identities_.begin(), identities_.end()), identities_.end());
    for (const Identity& identity : all) {
      const auto at = std::lower_bound(identities_.begin(), identities_.end(), identity);
      identity_indexes_.push_back(static_cast<uint32_t>(at - identities_.begin()));
    }
  }

  void Define() {
    for (const MergeInput& segment : segments_) {
      first_definitions_.emplace_back();
      for (size_t i = 0; i < segment.families.size(); ++i) {
        first_definitions_.back().push_back(definitions_.size());
        if (!segment.families[i].known) {
          continue;
        }
        for (const Show& show : ShowsOf(segment.families[i].kind)) {
          AddDefinition(show, segment.families[i], segment.AgeOf(i));
        }
      }
    }
    if (!segments_.empty()) {
      AddDefinition(kDroppedShow, {}, {});
    }
  }

  void AddDefinition(const Show& show, const SegmentFamily& family, FamilyAge age) {
    Definition definition;
    definition.own = show.own_name != nullptr;
    definition.type = show.type;
    definition.policy = family.policy;
    definition.age = std::move(age);
    if (show.type == MetricType::kHistogram) {
      definition.bounds = family.bounds;
    }
    if (definition.own) {
      definition.exposed = show.own_name;
      definition.help = show.help;
    } else {
      definition.group = family.group;
      definition.name = family.name;
      definition.exposed = naming_.Expose({family.group, family.name, show.type})->name;
      definition.help = SanitizeText(family.help);
      definition.unit = SanitizeText(family.unit);
    }
    definitions_.push_back(std::move(definition));
    fills_.push_back(show.fill);
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
      draft_.AddFamily(std::move(layout), fills_[family.definition], definition.policy);
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
        AddSeries(definition, index, raw, segment.OrdinalOf(number), PartOf(shows[i].fill, family.kind, index, series));
      }
    }
    const Placement& dropped = placements_.back();
    for (uint32_t i = 0; i < std::size(kDropReasons); ++i) {
      draft_.AddPart(dropped.family, identity_indexes_[index], {{kReasonLabel, kDropReasons[i]}}, {index, i, kNoPlace});
    }
  }

  void AddSeries(size_t definition_index, uint32_t segment_index, const Labels& raw, uint32_t ordinal, Part part) {
    const Placement& placement = placements_[definition_index];
    if (placement.family == Placement::kLeftOut) {
      draft_.CountByDefinition();
      return;
    }
    const Definition& definition = definitions_[definition_index];
    Labels labels = ExposedLabels(raw);
    bool changed = labels != raw;
    const auto set = [&](const char* name, std::string value) {
      changed |= std::any_of(labels.begin(), labels.end(), [&](const auto& label) { return label.first == name; });
      SetLabel(labels, name, std::move(value));
    };
    if (fills_[definition_index] == Fill::kGauge && draft_.policy(placement.family) == GaugePolicy::kEach) {
      set(kProcessLabel, std::to_string(ordinal));
    }
    const std::string source = definition.own ? definition.exposed : definition.group + "/" + definition.name;
    if (placement.source_label) {
      set(DraftLayout::kSourceLabel, SanitizeText(source));
    }
    const uint32_t identity = identity_indexes_[segment_index];
    if (changed) {
      draft_.AddChangedPart(placement.family, identity, std::move(labels), source + Braced(raw), part);
    } else {
      draft_.AddPart(placement.family, identity, std::move(labels), part);
    }
  }

  const std::span<const MergeInput> segments_;
  const MergeIdentity& identity_;
  const Naming& naming_;
  Diagnostics& diagnostics_;

  std::vector<Identity> identities_;                    // sorted, none twice
  std::vector<uint32_t> identity_indexes_;              // by segment
  std::vector<Definition> definitions_;                 // the last one is of the dropped counts
  std::vector<Fill> fills_;                             // by definition
  std::vector<std::vector<size_t>> first_definitions_;  // by segment and family
  std::vector<Placement> placements_;                   // by definition
  DraftLayout draft_;
};

}  // namespace

Identity ExposedIdentity(const SegmentIdentity& process, const MergeIdentity& identity) {
  Identity exposed{identity.job, {}};
  exposed.labels.emplace_back("instance", "rep_" + std::to_string(process.replica));
  if (!identity.ip_addr.empty()) {
    exposed.labels.emplace_back("ip_addr", SanitizeText(identity.ip_addr));
  }
  if (!process.role.empty()) {
    exposed.labels.emplace_back("role", SanitizeText(process.role));
  }
  return exposed;
}

MergePlan BuildMergePlan(std::span<const MergeInput> segments, const MergeIdentity& identity, const Naming& naming,
                         const SeriesLimits& limits, Diagnostics& diagnostics) {
  return PlanBuilder(segments, identity, naming, limits, diagnostics).Build();
}

}  // namespace persia::agent
