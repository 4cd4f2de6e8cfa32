#include "source/show.h"

namespace persia::agent {
namespace {

using persia::metrics::segment::Kind;

constexpr Show kCounterShows[] = {{.fill = Fill::kCounter, .type = MetricType::kCounter}};
constexpr Show kGaugeShows[] = {{.fill = Fill::kGauge, .type = MetricType::kGauge}};
constexpr Show kStreamShows[] = {{.fill = Fill::kGauge, .type = MetricType::kUntyped}};
constexpr Show kHistogramShows[] = {{.fill = Fill::kDistribution, .type = MetricType::kHistogram}};
constexpr Show kEventShows[] = {
    {Fill::kCounter, MetricType::kCounter, "persia_events_total", "Events that the job recorded."},
    {Fill::kTimestamp, MetricType::kGauge, "persia_event_last_timestamp_seconds",
     "When the job last recorded the event, in seconds since 1970."},
    {Fill::kDistribution, MetricType::kHistogram, "persia_event_interval_seconds",
     "Time between two of the event in one process, in seconds."},
};

}  // namespace

std::span<const Show> ShowsOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return kCounterShows;
    case Kind::kGauge:
      return kGaugeShows;
    case Kind::kHistogram:
      return kHistogramShows;
    case Kind::kStream:
      return kStreamShows;
    case Kind::kEvent:
      return kEventShows;
  }
  return {};
}

Show StreamShow(std::optional<MetricType> type) {
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

Show DroppedShow() {
  return {Fill::kDropped, MetricType::kCounter, "persia_metrics_dropped_total",
          "What the job's processes could not record, by reason."};
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
      return {segment, series.common, kind == Kind::kStream ? series.whole : kNoPlace};
    case Fill::kTimestamp:
      return {segment, series.common, kNoPlace};
    case Fill::kStreamSum:
    case Fill::kStreamHistogram:
    case Fill::kStreamSummary:
      return {segment, series.whole, series.real};
    case Fill::kDropped:
      break;
  }
  return {segment, 0, kNoPlace};
}

}  // namespace persia::agent
