#include "exposure/kind_families.h"

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

}  // namespace persia::agent
