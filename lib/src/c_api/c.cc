#include "persia/metrics/c.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handles.h"
#include "persia/metrics/callback.h"
#include "persia/metrics/emit.h"
#include "persia/metrics/events.h"
#include "persia/metrics/info.h"
#include "persia/metrics/init.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/log.h"
#include "persia/metrics/phase.h"
#include "persia/metrics/progress.h"
#include "persia/metrics/read.h"
#include "persia/metrics/remove.h"
#include "persia/metrics/stream.h"
#include "persia/metrics/testing.h"

namespace metrics = persia::metrics;

using metrics::c_api::FindOrMake;
using metrics::c_api::Guarded;
using metrics::c_api::Handle;
using metrics::c_api::InstrumentOf;
using metrics::c_api::OptionalHandle;
using metrics::c_api::Text;
using metrics::c_api::View;

struct persia_metrics_counter_t : Handle<metrics::Counter> {};
struct persia_metrics_gauge_t : Handle<metrics::Gauge> {};
struct persia_metrics_histogram_t : Handle<metrics::Histogram> {};
struct persia_metrics_time_cost_t : Handle<metrics::TimeCost> {};
struct persia_metrics_stream_t : Handle<metrics::Stream> {};
struct persia_metrics_phase_t : Handle<metrics::Phase> {};
struct persia_metrics_info_t : OptionalHandle<metrics::Info> {};
struct persia_metrics_enum_t : OptionalHandle<metrics::c_api::States> {};
struct persia_metrics_scope_t {
  metrics::testing::Scope scope;
};

namespace {

using metrics::benchmarkai::EmitStatus;
static_assert(PERSIA_METRICS_EMIT_DONE == static_cast<int>(EmitStatus::kDone));
static_assert(PERSIA_METRICS_EMIT_EMPTY_MAP == static_cast<int>(EmitStatus::kEmptyMap));
static_assert(PERSIA_METRICS_EMIT_NAME_TOO_LONG == static_cast<int>(EmitStatus::kNameTooLong));
static_assert(PERSIA_METRICS_EMIT_UNKNOWN_MODE == static_cast<int>(EmitStatus::kUnknownMode));
static_assert(PERSIA_METRICS_EMIT_FIFO_NOT_CREATED_IN_TIME == static_cast<int>(EmitStatus::kFifoNotCreatedInTime));
static_assert(PERSIA_METRICS_EMIT_FIFO_NOT_READ_IN_TIME == static_cast<int>(EmitStatus::kFifoNotReadInTime));
static_assert(PERSIA_METRICS_EMIT_FIFO_CANNOT_BE_WRITTEN == static_cast<int>(EmitStatus::kFifoCannotBeWritten));
static_assert(PERSIA_METRICS_EMIT_OUT_OF_MEMORY == static_cast<int>(EmitStatus::kOutOfMemory));
static_assert(PERSIA_METRICS_GAUGE_LAST == static_cast<int>(metrics::GaugeMerge::kLast));
static_assert(PERSIA_METRICS_GAUGE_SUM == static_cast<int>(metrics::GaugeMerge::kSum));
static_assert(PERSIA_METRICS_GAUGE_MIN == static_cast<int>(metrics::GaugeMerge::kMin));
static_assert(PERSIA_METRICS_GAUGE_MAX == static_cast<int>(metrics::GaugeMerge::kMax));
static_assert(PERSIA_METRICS_GAUGE_AVG == static_cast<int>(metrics::GaugeMerge::kAvg));
static_assert(PERSIA_METRICS_GAUGE_EACH == static_cast<int>(metrics::GaugeMerge::kEach));
static_assert(PERSIA_METRICS_COUNTER == static_cast<int>(metrics::MetricKind::kCounter));
static_assert(PERSIA_METRICS_GAUGE == static_cast<int>(metrics::MetricKind::kGauge));
static_assert(PERSIA_METRICS_HISTOGRAM == static_cast<int>(metrics::MetricKind::kHistogram));
static_assert(PERSIA_METRICS_STREAM == static_cast<int>(metrics::MetricKind::kStream));
static_assert(PERSIA_METRICS_EVENT == static_cast<int>(metrics::MetricKind::kEvent));
static_assert(PERSIA_METRICS_NATIVE_HISTOGRAM == static_cast<int>(metrics::MetricKind::kNativeHistogram));

std::span<const double> Bounds(const double* bounds, size_t count) {
  return bounds == nullptr ? std::span<const double>(metrics::DefaultSecondsBounds()) : std::span<const double>(bounds, count);
}

std::function<double()> Function(double (*function)(void* context), void* context) {
  if (function == nullptr) return {};
  return [function, context] { return function(context); };
}

std::vector<metrics::Label> Views(const persia_metrics_pair_t* labels, size_t count) {
  std::vector<metrics::Label> views;
  for (size_t i = 0; i < count; ++i) views.push_back({View(labels[i].name), View(labels[i].value)});
  return views;
}

uint64_t Store(const metrics::HistogramValue& value, double* sum, uint64_t* buckets, size_t bucket_count) {
  if (sum != nullptr) *sum = value.sum;
  for (size_t i = 0; i < bucket_count; ++i) buckets[i] = i < value.buckets.size() ? value.buckets[i] : 0;
  return value.count;
}

// Whether there is a value: 1 or 0.
int StoreIfSet(const std::optional<double>& value, double* to) {
  if (to != nullptr && value.has_value()) *to = value.value_or(0);
  return value.has_value() ? 1 : 0;
}

std::vector<persia_metrics_pair_t> Pairs(const metrics::LabelSet& labels) {
  std::vector<persia_metrics_pair_t> pairs;
  for (const auto& [name, value] : labels) pairs.push_back({name.c_str(), value.c_str()});
  return pairs;
}

}  // namespace

const char* persia_metrics_version() { return PERSIA_METRICS_VERSION_TEXT; }

int persia_metrics_version_number() { return PERSIA_METRICS_VERSION_NUMBER; }

int persia_metrics_init(const char* job_name, const char* role, int replica) {
  return Guarded([&] {
    metrics::Options options{.job_name = Text(job_name), .role = Text(role)};
    if (replica >= 0) options.replica = replica;
    return metrics::Init(options).exporting ? 1 : 0;
  });
}

int persia_metrics_exporting() { return metrics::Exporting() ? 1 : 0; }

persia_metrics_counter_t* persia_metrics_counter(const char* group, const char* name,
                                                 const persia_metrics_description_t* about) {
  return FindOrMake<persia_metrics_counter_t>(group, name, about);
}

void persia_metrics_counter_add(persia_metrics_counter_t* counter, double by) { InstrumentOf(counter).Increment(by); }

double persia_metrics_counter_value(const persia_metrics_counter_t* counter) { return InstrumentOf(counter).Value(); }

void persia_metrics_counter_set_function(persia_metrics_counter_t* counter, double (*function)(void* context), void* context) {
  InstrumentOf(counter).SetFunction(Function(function, context));
}

persia_metrics_gauge_t* persia_metrics_gauge(const char* group, const char* name, persia_metrics_gauge_merge_t merge,
                                             const persia_metrics_description_t* about) {
  return FindOrMake<persia_metrics_gauge_t>(group, name, about, static_cast<metrics::GaugeMerge>(merge));
}

void persia_metrics_gauge_set(persia_metrics_gauge_t* gauge, double value) { InstrumentOf(gauge).Set(value); }

void persia_metrics_gauge_add(persia_metrics_gauge_t* gauge, double by) { InstrumentOf(gauge).Add(by); }

int persia_metrics_gauge_value(const persia_metrics_gauge_t* gauge, double* value) {
  return StoreIfSet(InstrumentOf(gauge).Value(), value);
}

void persia_metrics_gauge_unset(persia_metrics_gauge_t* gauge) { InstrumentOf(gauge).Unset(); }

void persia_metrics_gauge_set_function(persia_metrics_gauge_t* gauge, double (*function)(void* context), void* context) {
  InstrumentOf(gauge).SetFunction(Function(function, context));
}

void persia_metrics_set_callback_period(double seconds) {
  constexpr double kDay = 86400;
  metrics::SetCallbackPeriod(std::chrono::milliseconds(static_cast<int64_t>(std::clamp(seconds, 0.01, kDay) * 1000)));
}

persia_metrics_phase_t* persia_metrics_phase(const char* name) {
  return FindOrMake<persia_metrics_phase_t>(nullptr, name, nullptr);
}

void persia_metrics_phase_enter(const persia_metrics_phase_t* phase) { InstrumentOf(phase).Enter(); }

void persia_metrics_phase_leave(const persia_metrics_phase_t* phase) { InstrumentOf(phase).Leave(); }

double persia_metrics_phase_value(const persia_metrics_phase_t* phase) { return InstrumentOf(phase).Value(); }

void persia_metrics_set_step(uint64_t step) { metrics::SetStep(step); }

void persia_metrics_count_steps(uint64_t count) { metrics::CountSteps(count); }

void persia_metrics_count_samples(uint64_t count) { metrics::CountSamples(count); }

void persia_metrics_count_tokens(uint64_t count) { metrics::CountTokens(count); }

void persia_metrics_set_total_steps(uint64_t steps) { metrics::SetTotalSteps(steps); }

persia_metrics_info_t* persia_metrics_info(const char* group, const char* name, const persia_metrics_description_t* about) {
  return FindOrMake<persia_metrics_info_t>(group, name, about);
}

void persia_metrics_info_set(persia_metrics_info_t* info, const persia_metrics_pair_t* texts, size_t count) {
  if (auto& set = InstrumentOf(info)) Guarded([&] { set->Set(Views(texts, count)); });
}

void persia_metrics_info_unset(persia_metrics_info_t* info) {
  if (auto& set = InstrumentOf(info)) set->Unset();
}

persia_metrics_enum_t* persia_metrics_enum(const char* group, const char* name, const char* const* states, size_t count,
                                           const persia_metrics_description_t* about) {
  persia_metrics_enum_t* const found = Guarded([&] {
    std::vector<std::string_view> views;
    for (size_t i = 0; i < count; ++i) views.push_back(View(states[i]));
    return FindOrMake<persia_metrics_enum_t>(group, name, about, views);
  });
  return found == nullptr ? metrics::c_api::CountsNothing<persia_metrics_enum_t>() : found;
}

void persia_metrics_enum_set(persia_metrics_enum_t* states, const char* state) {
  if (auto& set = InstrumentOf(states)) set->current.Set(View(state));
}

void persia_metrics_enum_unset(persia_metrics_enum_t* states) {
  if (auto& set = InstrumentOf(states)) set->current.Unset();
}

int persia_metrics_enum_value(const persia_metrics_enum_t* states) {
  const auto& set = InstrumentOf(states);
  if (!set.has_value()) return -1;
  const std::string value = set->current.Value();
  const auto found = std::find(set->names.begin(), set->names.end(), value);
  return value.empty() || found == set->names.end() ? -1 : static_cast<int>(found - set->names.begin());
}

persia_metrics_histogram_t* persia_metrics_histogram(const char* group, const char* name, const double* bounds,
                                                     size_t bound_count, const persia_metrics_description_t* about) {
  return FindOrMake<persia_metrics_histogram_t>(group, name, about, Bounds(bounds, bound_count));
}

persia_metrics_histogram_t* persia_metrics_native_histogram(const char* group, const char* name,
                                                            const persia_metrics_native_buckets_t* buckets,
                                                            const persia_metrics_description_t* about) {
  metrics::NativeBuckets native;
  if (buckets != nullptr) native = {buckets->factor, buckets->max_buckets, buckets->zero_threshold, buckets->most};
  return FindOrMake<persia_metrics_histogram_t>(group, name, about, native);
}

void persia_metrics_histogram_observe(persia_metrics_histogram_t* histogram, double value) {
  InstrumentOf(histogram).Observe(value);
}

void persia_metrics_histogram_observe_many(persia_metrics_histogram_t* histogram, double value, uint64_t count) {
  InstrumentOf(histogram).Observe(value, count);
}

uint64_t persia_metrics_histogram_value(const persia_metrics_histogram_t* histogram, double* sum, uint64_t* buckets,
                                        size_t bucket_count) {
  return Store(InstrumentOf(histogram).Value(), sum, buckets, bucket_count);
}

persia_metrics_time_cost_t* persia_metrics_time_cost(const char* group, const char* name, const double* bounds,
                                                     size_t bound_count, const persia_metrics_description_t* about) {
  return FindOrMake<persia_metrics_time_cost_t>(group, name, about, Bounds(bounds, bound_count));
}

void persia_metrics_time_cost_observe(persia_metrics_time_cost_t* time_cost, double seconds) {
  InstrumentOf(time_cost).Observe(seconds);
}

void persia_metrics_time_cost_observe_many(persia_metrics_time_cost_t* time_cost, double seconds, uint64_t count) {
  InstrumentOf(time_cost).Observe(seconds, count);
}

uint64_t persia_metrics_time_cost_value(const persia_metrics_time_cost_t* time_cost, double* sum, double* last,
                                        uint64_t* buckets, size_t bucket_count) {
  const metrics::TimeCostValue value = InstrumentOf(time_cost).Value();
  StoreIfSet(value.last, last);
  return Store(value.histogram, sum, buckets, bucket_count);
}

persia_metrics_stream_t* persia_metrics_stream(const char* group, const char* name, const persia_metrics_description_t* about) {
  return FindOrMake<persia_metrics_stream_t>(group, name, about);
}

void persia_metrics_stream_add(persia_metrics_stream_t* stream, double value) { InstrumentOf(stream).Add(value); }

void persia_metrics_stream_add_many(persia_metrics_stream_t* stream, double value, uint64_t count) {
  InstrumentOf(stream).Add(value, count);
}

uint64_t persia_metrics_stream_value(const persia_metrics_stream_t* stream, double* sum, double* last) {
  const metrics::StreamValue value = InstrumentOf(stream).Value();
  if (sum != nullptr) *sum = value.sum;
  StoreIfSet(value.last, last);
  return value.count;
}

void persia_metrics_event(const char* type, const char* name, const persia_metrics_pair_t* metadata, size_t metadata_count) {
  Guarded([&] {
    std::vector<metrics::events::MetadataEntry> entries;
    for (size_t i = 0; i < metadata_count; ++i) {
      const char* value = metadata[i].value;
      entries.emplace_back(metadata[i].name == nullptr ? "" : metadata[i].name,
                           value == nullptr ? metrics::events::MetadataValue() : std::string_view(value));
    }
    metrics::events::Record(type == nullptr ? metrics::events::kDefaultType : std::string_view(type), View(name), entries);
  });
}

uint64_t persia_metrics_event_count(const char* type, const char* name) {
  return metrics::events::Count(type == nullptr ? metrics::events::kDefaultType : std::string_view(type), View(name));
}

size_t persia_metrics_read(void (*visit)(const persia_metrics_series_t* series, void* context), void* context) {
  size_t count = 0;
  Guarded([&] {
    const metrics::Snapshot snapshot = metrics::ReadSnapshot();
    for (const metrics::MetricSnapshot& metric : snapshot.metrics) {
      for (const metrics::SeriesSnapshot& series : metric.series) {
        const std::vector<persia_metrics_pair_t> labels = Pairs(series.labels);
        const persia_metrics_series_t passed = {static_cast<persia_metrics_kind_t>(metric.kind),
                                                metric.group.c_str(),
                                                metric.name.c_str(),
                                                metric.help.c_str(),
                                                metric.unit.c_str(),
                                                static_cast<persia_metrics_gauge_merge_t>(metric.merge),
                                                labels.data(),
                                                labels.size(),
                                                series.value.has_value() ? 1 : 0,
                                                series.value.value_or(0),
                                                series.count,
                                                series.sum,
                                                metric.bounds.data(),
                                                series.buckets.empty() ? nullptr : series.buckets.data(),
                                                metric.bounds.size()};
        ++count;
        visit(&passed, context);
      }
    }
  });
  return count;
}

int persia_metrics_read_value(const char* group, const char* name, const persia_metrics_pair_t* labels, size_t label_count,
                              double* value) {
  return Guarded([&] { return StoreIfSet(metrics::ReadValue(View(group), View(name), Views(labels, label_count)), value); });
}

int persia_metrics_remove(const char* group, const char* name, const persia_metrics_pair_t* labels, size_t label_count) {
  return Guarded([&] { return metrics::RemoveSeries(View(group), View(name), Views(labels, label_count)) ? 1 : 0; });
}

void persia_metrics_clear(const char* group, const char* name) { metrics::ClearSeries(View(group), View(name)); }

persia_metrics_scope_t* persia_metrics_scope_begin(void) { return new persia_metrics_scope_t(); }

void persia_metrics_scope_end(persia_metrics_scope_t* scope) { delete scope; }

void persia_metrics_set_log_handler(void (*handler)(const char* line, void* context), void* context) {
  Guarded([&] {
    metrics::SetLogHandler(
        handler == nullptr ? metrics::LogHandler()
                           : [handler, context](std::string_view line) { handler(std::string(line).c_str(), context); });
  });
}

persia_metrics_emit_status_t persia_metrics_emit(const persia_metrics_number_t* numbers, size_t count, char* error,
                                                 size_t error_bytes) {
  const auto emit = [&] {
    std::vector<metrics::benchmarkai::Metric> given;
    for (size_t i = 0; i < count; ++i) given.emplace_back(numbers[i].name == nullptr ? "" : numbers[i].name, numbers[i].value);
    return std::optional(metrics::benchmarkai::Emit(given));
  };
  const metrics::benchmarkai::EmitResult result =
      Guarded(emit).value_or(metrics::benchmarkai::EmitResult{EmitStatus::kOutOfMemory, "out of memory"});
  if (error != nullptr && error_bytes > 0) {
    const size_t size = std::min(result.error.size(), error_bytes - 1);
    std::memcpy(error, result.error.data(), size);
    error[size] = '\0';
  }
  return static_cast<persia_metrics_emit_status_t>(result.status);
}
