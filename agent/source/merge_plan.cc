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
      break;
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
  PlanBuilder(std::span<const SegmentReader* const> segments, const MergeIdentity& identity, const Naming& naming,
              Diagnostics& diagnostics)
      : segments_(segments), identity_(identity), naming_(naming), diagnostics_(diagnostics) {}

  MergePlan Build(Ordinals& ordinals) {
    FindIdentities();
    ordinals.Assign(segments_, identity_keys_);
    Define();
    MakeFamilies();
    for (uint32_t i = 0; i < segments_.size(); ++i) {
      AddSegment(i, std::to_string(ordinals.Of(segments_[i]->id())));
    }
    return draft_.Finish(std::move(identities_), diagnostics_);
  }

 private:
  void FindIdentities() {
    std::vector<Identity> all;
    for (const SegmentReader* reader : segments_) {
      Identity identity{identity_.job, {}};
      identity.labels.emplace_back("instance", "rep_" + std::to_string(reader->identity().replica));
      if (!identity_.ip_addr.empty()) {
        identity.labels.emplace_back("ip_addr", SanitizeText(identity_.ip_addr));
      }
      if (!reader->identity().role.empty()) {
        identity.labels.emplace_back("role", SanitizeText(reader->identity().role));
      }
      identity_keys_.push_back(Braced(identity.labels));
      all.push_back(std::move(identity));
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
    for (const SegmentReader* reader : segments_) {
      first_definitions_.emplace_back();
      const std::span<const SegmentFamily> families = reader->families();
      for (size_t i = 0; i < families.size(); ++i) {
        first_definitions_.back().push_back(definitions_.size());
        if (!families[i].known) {
          continue;
        }
        for (const Show& show : ShowsOf(families[i].kind)) {
          AddDefinition(show, families[i], {reader->header().birth_unix_ns, reader->id(), i});
        }
      }
    }
    if (!segments_.empty()) {
      AddDefinition(kDroppedShow, {}, {});
    }
  }

  void AddDefinition(const Show& show, const SegmentFamily& family, std::tuple<uint64_t, std::string, size_t> age) {
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
      definition.exposed = naming_.FamilyName({family.group, family.name, show.type});
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

  void AddSegment(uint32_t index, const std::string& ordinal) {
    const SegmentReader& reader = *segments_[index];
    Labels raw;
    for (const SegmentSeries& series : reader.series()) {
      const SegmentFamily& family = reader.families()[series.record.family];
      raw.clear();
      reader.VisitLabels(series, [&](std::string_view name, std::string_view value) { raw.emplace_back(name, value); });
      if (family.kind == Kind::kEvent) {
        raw.insert(raw.end(), {{"event", family.name}, {"type", family.group}});
        std::sort(raw.begin(), raw.end());
      }
      // A series' own label wins over its process's.
      const size_t own = raw.size();
      for (const auto& label : reader.identity().labels) {
        const auto same = [&](const auto& other) { return other.first == label.first; };
        if (std::none_of(raw.begin(), raw.begin() + static_cast<ptrdiff_t>(own), same)) {
          raw.push_back(label);
        }
      }
      std::sort(raw.begin(), raw.end());
      const std::span<const Show> shows = ShowsOf(family.kind);
      for (size_t i = 0; i < shows.size(); ++i) {
        const size_t definition = first_definitions_[index][series.record.family] + i;
        AddSeries(definition, index, raw, ordinal, PartOf(shows[i].fill, family.kind, index, series));
      }
    }
    const Placement& dropped = placements_.back();
    for (uint32_t i = 0; i < std::size(kDropReasons); ++i) {
      draft_.AddPart(dropped.family, identity_indexes_[index], {{kReasonLabel, kDropReasons[i]}}, {index, i, kNoPlace});
    }
  }

  void AddSeries(size_t definition_index, uint32_t segment_index, const Labels& raw, const std::string& ordinal, Part part) {
    const Placement& placement = placements_[definition_index];
    if (placement.family == Placement::kLeftOut) {
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
      set(kProcessLabel, ordinal);
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

  const std::span<const SegmentReader* const> segments_;
  const MergeIdentity& identity_;
  const Naming& naming_;
  Diagnostics& diagnostics_;

  std::vector<Identity> identities_;                    // sorted, none twice
  std::vector<std::string> identity_keys_;              // by segment
  std::vector<uint32_t> identity_indexes_;              // by segment
  std::vector<Definition> definitions_;                 // the last one is of the dropped counts
  std::vector<Fill> fills_;                             // by definition
  std::vector<std::vector<size_t>> first_definitions_;  // by segment and family
  std::vector<Placement> placements_;                   // by definition
  DraftLayout draft_;
};

}  // namespace

MergePlan BuildMergePlan(std::span<const SegmentReader* const> segments, const MergeIdentity& identity, const Naming& naming,
                         Ordinals& ordinals, Diagnostics& diagnostics) {
  return PlanBuilder(segments, identity, naming, diagnostics).Build(ordinals);
}

}  // namespace persia::agent
