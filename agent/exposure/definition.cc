#include "exposure/definition.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "model/bounds.h"

namespace persia::agent {
namespace {

using persia::metrics::segment::Kind;

constexpr KindFamily kCounterFamilies[] = {{.fill = Fill::kCounter, .type = MetricType::kCounter}};
constexpr KindFamily kGaugeFamilies[] = {{.fill = Fill::kGauge, .type = MetricType::kGauge}};
constexpr KindFamily kStreamFamilies[] = {{.fill = Fill::kGauge, .type = MetricType::kUntyped}};
constexpr KindFamily kHistogramFamilies[] = {{.fill = Fill::kDistribution, .type = MetricType::kHistogram}};
constexpr KindFamily kEventFamilies[] = {
    {Fill::kCounter, MetricType::kCounter, "persia_events_total", "Events that the job recorded."},
    {Fill::kTimestamp, MetricType::kGauge, "persia_event_last_timestamp_seconds",
     "When the job last recorded the event, in seconds since 1970."},
    {Fill::kDistribution, MetricType::kHistogram, "persia_event_interval_seconds",
     "Time between two such events of a process, in seconds."},
};

// The bounds of a stream's histogram are boundaries of the stream's buckets, so that each count is exact.
std::vector<double> StreamHistogramBounds(const Definition& definition, const Exposed& exposed, Diagnostics& diagnostics) {
  std::vector<double> bounds = SnapToStreamBounds(exposed.bounds, definition.scale);
  if (bounds != exposed.bounds) {
    diagnostics.Report("bounds", "the histogram " + definition.exposed + " has the bounds " + BoundsText(bounds) +
                                     " instead of " + BoundsText(exposed.bounds) +
                                     ", so that they are boundaries of its stream's buckets");
  }
  return bounds;
}

// The first bucket is the zero bucket, which takes the values up to the stream's first boundary.
NativeBuckets StreamNativeBuckets(const Definition& definition, const Exposed& exposed) {
  NativeBuckets native{.schema = kStreamSchema,
                       .first = kFirstStreamBound + 1 + NativeShift(kStreamSchema, definition.scale),
                       .buckets = kLastStreamBound - kFirstStreamBound + 1,
                       .max_buckets = exposed.max_buckets,
                       .classic = exposed.classic,
                       .cuts = StreamCuts(definition.bounds, definition.scale)};
  for (uint32_t& cut : native.cuts) ++cut;
  return native;
}

// The native buckets of a program's histogram, and the bounds of its classic form: the wanted ones, or the default ones, each
// moved to the nearest bound of a bucket.
void SetNativeBuckets(const SegmentFamily& family, const Exposed& exposed, Definition& definition) {
  const int schema = NativeSchemaOf(family.bounds);
  const int least = metrics::segment::NearestNativeIndex(schema, family.bounds.front());
  NativeBuckets native{.schema = schema,
                       .first = least + 1 + NativeShift(schema, definition.scale),
                       .buckets = static_cast<uint32_t>(family.bounds.size()),
                       .max_buckets = family.max_buckets,
                       .classic = exposed.classic};
  std::vector<double> wanted = exposed.bounds.empty() ? DefaultStreamBounds() : exposed.bounds;
  for (double bound : wanted) {
    if (!exposed.bounds.empty()) bound = definition.scale.Undo(bound);
    const int index = metrics::segment::NearestNativeIndex(schema, std::max(bound, family.bounds.front()));
    const int place = std::min(index - least, static_cast<int>(family.bounds.size()) - 1);
    const auto cut = static_cast<uint32_t>(place + 1);
    if (!native.cuts.empty() && native.cuts.back() == cut) continue;
    native.cuts.push_back(cut);
    definition.bounds.push_back(definition.scale.Apply(family.bounds[static_cast<size_t>(place)]));
  }
  definition.native = std::move(native);
}

// Drops the scale if it would make two bounds equal or one infinite.
void ScaleBounds(Definition& definition, Diagnostics& diagnostics) {
  std::vector<double> scaled = definition.bounds;
  for (double& bound : scaled) bound = definition.scale.Apply(bound);
  const bool good = std::adjacent_find(scaled.begin(), scaled.end(), std::greater_equal<>()) == scaled.end() &&
                    std::all_of(scaled.begin(), scaled.end(), [](double bound) { return std::isfinite(bound); });
  if (good) {
    definition.bounds = std::move(scaled);
    return;
  }
  definition.scale = Scale();
  diagnostics.Report("conflict",
                     "the histogram " + definition.exposed +
                         " is exposed without the scale of its rule, which would make two of its bounds equal or one infinite");
}

}  // namespace

std::span<const KindFamily> FamiliesOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return kCounterFamilies;
    case Kind::kGauge:
      return kGaugeFamilies;
    case Kind::kHistogram:
    case Kind::kNativeHistogram:
      return kHistogramFamilies;
    case Kind::kStream:
      return kStreamFamilies;
    case Kind::kEvent:
      return kEventFamilies;
    case Kind::kClock:  // read as a counter
      break;
  }
  return {};
}

KindFamily StreamFamily(std::optional<MetricType> type) {
  switch (type.value_or(MetricType::kGauge)) {
    case MetricType::kCounter:
      return {.fill = Fill::kStreamSum, .type = MetricType::kCounter};
    case MetricType::kHistogram:
      return {.fill = Fill::kStreamHistogram, .type = MetricType::kHistogram};
    case MetricType::kSummary:
      return {.fill = Fill::kStreamSummary, .type = MetricType::kSummary};
    case MetricType::kGauge:
    case MetricType::kUntyped:
      break;
  }
  return {.fill = Fill::kGauge, .type = MetricType::kGauge};
}

KindFamily DroppedFamily() {
  return {Fill::kDropped, MetricType::kCounter, "persia_metrics_dropped_total",
          "Measurements that a worker's library could not record, by reason."};
}

Part PartOf(Fill fill, Kind kind, uint32_t segment, const SegmentSeries& series) {
  const bool event = kind == Kind::kEvent;
  switch (fill) {
    case Fill::kCounter:
      // An event's count is a whole number, in the cell after its timestamp.
      return event ? Part{segment, series.whole + 1, kNoIndex} : Part{segment, series.whole, series.real};
    case Fill::kDistribution:
      return {segment, series.whole + (event ? 3 : 1), series.real};
    case Fill::kGauge:
      return {segment, series.common, kind == Kind::kStream ? series.whole : kNoIndex};
    case Fill::kTimestamp:
      return {segment, series.common, kNoIndex};
    case Fill::kStreamSum:
    case Fill::kStreamHistogram:
    case Fill::kStreamSummary:
      return {segment, series.whole, series.real};
    case Fill::kDropped:
      break;
  }
  return {segment, 0, kNoIndex};
}

std::string BoundsText(std::span<const double> bounds) {
  std::string out;
  for (const double bound : bounds) {
    std::array<char, 32> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), bound).ptr;
    out += (out.empty() ? "" : ", ") + std::string(text.data(), end);
  }
  return out;
}

std::optional<Definition> DefinitionOf(const SegmentFamily& family, KindFamily as, const Naming& naming,
                                       Diagnostics& diagnostics) {
  Definition definition;
  definition.policy = family.policy;
  if (as.own_name != nullptr) {
    definition.own = true;
    definition.exposed = as.own_name;
    definition.help = as.help;
    definition.type = as.type;
    definition.fill = as.fill;
    if (as.fill == Fill::kDistribution) definition.bounds = family.bounds;
    return definition;
  }
  const std::shared_ptr<const Exposed> exposed = naming.Expose({family.group, family.name, as.type});
  if (exposed->drop) return std::nullopt;
  if (family.kind == Kind::kStream) {
    as = StreamFamily(exposed->type);
    definition.ttl = exposed->ttl;
  }
  definition.type = as.type;
  definition.fill = as.fill;
  definition.group = family.group;
  definition.name = family.name;
  definition.exposed = exposed->name;
  definition.labels = exposed->labels;
  definition.labels_yield = exposed->labels_yield;
  definition.help = exposed->help.empty() ? SanitizeText(family.help) : exposed->help;
  definition.scale = Scale(exposed->scale);
  definition.unit = definition.scale.is_one() ? SanitizeText(family.unit) : "";
  if (as.fill == Fill::kStreamHistogram) {
    definition.bounds = StreamHistogramBounds(definition, *exposed, diagnostics);
    if (exposed->native) definition.native = StreamNativeBuckets(definition, *exposed);
  } else if (as.fill == Fill::kStreamSummary) {
    definition.bounds = exposed->quantiles;
  } else if (family.kind == Kind::kNativeHistogram) {
    SetNativeBuckets(family, *exposed, definition);
  } else if (as.fill == Fill::kDistribution) {
    definition.bounds = family.bounds;
    if (family.bounds.empty()) definition.type = MetricType::kSummary;  // a sum and a count
    ScaleBounds(definition, diagnostics);
  }
  return definition;
}

Definition DefinitionOf(const FamilyLayout& own) {
  Definition definition;
  definition.own = true;
  definition.exposed = own.name;
  definition.type = own.type;
  definition.bounds = own.bounds;
  definition.native = own.native;
  definition.help = own.help;
  definition.unit = own.unit;
  return definition;
}

}  // namespace persia::agent
