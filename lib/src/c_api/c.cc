#include "persia/metrics/c.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fork_locks.h"

#include "persia/metrics/callback.h"
#include "persia/metrics/emit.h"
#include "persia/metrics/events.h"
#include "persia/metrics/info.h"
#include "persia/metrics/init.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/internal/out_of_memory.h"
#include "persia/metrics/log.h"
#include "persia/metrics/phase.h"
#include "persia/metrics/progress.h"
#include "persia/metrics/read.h"
#include "persia/metrics/remove.h"
#include "persia/metrics/stream.h"
#include "persia/metrics/testing.h"

namespace metrics = persia::metrics;

struct persia_metrics_counter_t {
  metrics::Counter counter;
};
struct persia_metrics_gauge_t {
  metrics::Gauge gauge;
};
struct persia_metrics_scope_t {
  metrics::testing::Scope scope;
};
struct persia_metrics_info_t {
  std::optional<metrics::Info> info = std::nullopt;  // none if memory ran out
};
struct persia_metrics_enum_t {
  std::optional<metrics::Enum> states = std::nullopt;  // none if memory ran out
  std::vector<std::string> names = {};
};
struct persia_metrics_histogram_t {
  metrics::Histogram histogram;
};
struct persia_metrics_time_cost_t {
  metrics::TimeCost time_cost;
};
struct persia_metrics_stream_t {
  metrics::Stream stream;
};
struct persia_metrics_phase_t {
  metrics::Phase phase;
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

std::string_view View(const char* text) { return text == nullptr ? std::string_view() : text; }
std::string Text(const char* text) { return std::string(View(text)); }

metrics::Description About(const persia_metrics_description_t* about) {
  if (about == nullptr) return {};
  metrics::Description described{.help = Text(about->help), .unit = Text(about->unit)};
  for (size_t i = 0; i < about->label_count; ++i) {
    described.labels.emplace_back(Text(about->labels[i].name), Text(about->labels[i].value));
  }
  return described;
}

// The bytes of a definition, which are a part of a handle's key: a request with another definition gets a handle of its own.
template <class T>
std::string BytesOf(std::span<const T> definition) {
  return {reinterpret_cast<const char*>(definition.data()), definition.size_bytes()};
}

// The handles of one kind that were requested, by definition, group, name and labels. Never destroyed: they are used after
// main.
template <class Handle>
using Handles = std::map<std::vector<std::string>, std::unique_ptr<Handle>>;

template <class Handle>
constinit Handles<Handle>* handles = nullptr;  // guarded by the lock

// Finds the handle, or makes it by `make(about)`. If memory runs out, returns a handle that counts nothing.
template <class Handle, class T, class Make>
Handle* FindOrMake(const char* group, const char* name, std::span<const T> definition,
                   const persia_metrics_description_t* description, const Make& make) noexcept {
  using persia::metrics::ForkLock;
  try {
    const metrics::Description about = About(description);
    metrics::LabelSet sorted = about.labels;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::string> key = {BytesOf(definition), Text(group), Text(name)};
    for (auto& [label, value] : sorted) {
      key.push_back(std::move(label));
      key.push_back(std::move(value));
    }
    persia::metrics::MutexLock lock(persia::metrics::MutexOf(ForkLock::kHandlesInC));
    if (handles<Handle> == nullptr) {
      handles<Handle> = new Handles<Handle>;
    }
    std::unique_ptr<Handle>& handle = (*handles<Handle>)[std::move(key)];
    // Also for a handle that exists: its series may have been removed, and is then exposed again.
    Handle made{make(about)};
    if (handle == nullptr) {
      handle = std::make_unique<Handle>(std::move(made));
    }
    return handle.get();
  } catch (const std::bad_alloc&) {
    metrics::internal::CountOutOfMemory();
    static constinit Handle counts_nothing{};
    return &counts_nothing;
  }
}

// A kind that needs no more than a description.
template <class Handle, class Make>
Handle* FindOrMake(const char* group, const char* name, const persia_metrics_description_t* about, const Make& make) noexcept {
  return FindOrMake<Handle>(group, name, std::span<const char>(), about, make);
}

std::span<const double> Bounds(const double* bounds, size_t count) {
  return bounds == nullptr ? std::span<const double>(metrics::DefaultSecondsBounds()) : std::span<const double>(bounds, count);
}

std::function<double()> Function(double (*function)(void* context), void* context) {
  if (function == nullptr) return {};
  return [function, context] { return function(context); };
}

std::vector<metrics::Label> Views(const persia_metrics_pair_t* labels, size_t count) {
  std::vector<metrics::Label> views;
  for (size_t i = 0; i < count; ++i) {
    views.push_back({View(labels[i].name), View(labels[i].value)});
  }
  return views;
}

uint64_t Store(const metrics::HistogramValue& value, double* sum, uint64_t* buckets, size_t bucket_count) {
  if (sum != nullptr) {
    *sum = value.sum;
  }
  for (size_t i = 0; i < bucket_count; ++i) {
    buckets[i] = i < value.buckets.size() ? value.buckets[i] : 0;
  }
  return value.count;
}

void StoreLast(const std::optional<double>& value, double* last) {
  if (last != nullptr && value.has_value()) {
    *last = value.value_or(0);
  }
}

std::vector<persia_metrics_pair_t> Pairs(const metrics::LabelSet& labels) {
  std::vector<persia_metrics_pair_t> pairs;
  for (const auto& [name, value] : labels) {
    pairs.push_back({name.c_str(), value.c_str()});
  }
  return pairs;
}

}  // namespace

const char* persia_metrics_version() { return PERSIA_METRICS_VERSION_TEXT; }

int persia_metrics_version_number() { return PERSIA_METRICS_VERSION_NUMBER; }

int persia_metrics_init(const char* job_name, const char* role, int replica) {
  try {
    metrics::Options options{.job_name = Text(job_name), .role = Text(role)};
    if (replica >= 0) {
      options.replica = replica;
    }
    return metrics::Init(options).exporting ? 1 : 0;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

int persia_metrics_exporting() { return metrics::Exporting() ? 1 : 0; }

persia_metrics_counter_t* persia_metrics_counter(const char* group, const char* name,
                                                 const persia_metrics_description_t* about) {
  return FindOrMake<persia_metrics_counter_t>(
      group, name, about, [&](const metrics::Description& of) { return metrics::Counter(View(group), View(name), of); });
}

void persia_metrics_counter_add(persia_metrics_counter_t* counter, double by) {
  if (counter != nullptr) {
    counter->counter.Increment(by);
  }
}

double persia_metrics_counter_value(const persia_metrics_counter_t* counter) {
  return counter == nullptr ? 0 : counter->counter.Value();
}

persia_metrics_gauge_t* persia_metrics_gauge(const char* group, const char* name, persia_metrics_gauge_merge_t merge,
                                             const persia_metrics_description_t* about) {
  const auto policy = static_cast<metrics::GaugeMerge>(merge);
  return FindOrMake<persia_metrics_gauge_t>(
      group, name, std::span<const metrics::GaugeMerge>(&policy, 1), about,
      [&](const metrics::Description& of) { return metrics::Gauge(View(group), View(name), policy, of); });
}

void persia_metrics_gauge_set(persia_metrics_gauge_t* gauge, double value) {
  if (gauge != nullptr) {
    gauge->gauge.Set(value);
  }
}

void persia_metrics_gauge_add(persia_metrics_gauge_t* gauge, double by) {
  if (gauge != nullptr) {
    gauge->gauge.Add(by);
  }
}

int persia_metrics_gauge_value(const persia_metrics_gauge_t* gauge, double* value) {
  const std::optional<double> now = gauge == nullptr ? std::nullopt : gauge->gauge.Value();
  StoreLast(now, value);
  return now.has_value() ? 1 : 0;
}

void persia_metrics_gauge_unset(persia_metrics_gauge_t* gauge) {
  if (gauge != nullptr) {
    gauge->gauge.Unset();
  }
}

void persia_metrics_gauge_set_function(persia_metrics_gauge_t* gauge, double (*function)(void* context), void* context) {
  if (gauge != nullptr) {
    gauge->gauge.SetFunction(Function(function, context));
  }
}

void persia_metrics_counter_set_function(persia_metrics_counter_t* counter, double (*function)(void* context), void* context) {
  if (counter != nullptr) {
    counter->counter.SetFunction(Function(function, context));
  }
}

void persia_metrics_set_callback_period(double seconds) {
  constexpr double kDay = 86400;
  metrics::SetCallbackPeriod(std::chrono::milliseconds(static_cast<int64_t>(std::clamp(seconds, 0.01, kDay) * 1000)));
}

persia_metrics_phase_t* persia_metrics_phase(const char* name) {
  return FindOrMake<persia_metrics_phase_t>(nullptr, name, nullptr,
                                            [&](const metrics::Description&) { return metrics::Phase(View(name)); });
}

void persia_metrics_phase_enter(const persia_metrics_phase_t* phase) {
  if (phase != nullptr) {
    phase->phase.Enter();
  }
}

void persia_metrics_phase_leave(const persia_metrics_phase_t* phase) {
  if (phase != nullptr) {
    phase->phase.Leave();
  }
}

double persia_metrics_phase_value(const persia_metrics_phase_t* phase) { return phase == nullptr ? 0 : phase->phase.Value(); }

void persia_metrics_set_step(uint64_t step) { metrics::SetStep(step); }

void persia_metrics_count_steps(uint64_t count) { metrics::CountSteps(count); }

void persia_metrics_count_samples(uint64_t count) { metrics::CountSamples(count); }

void persia_metrics_count_tokens(uint64_t count) { metrics::CountTokens(count); }

void persia_metrics_set_total_steps(uint64_t steps) { metrics::SetTotalSteps(steps); }

persia_metrics_info_t* persia_metrics_info(const char* group, const char* name, const persia_metrics_description_t* about) {
  return FindOrMake<persia_metrics_info_t>(
      group, name, about, [&](const metrics::Description& of) { return metrics::Info(View(group), View(name), of); });
}

void persia_metrics_info_set(persia_metrics_info_t* info, const persia_metrics_pair_t* texts, size_t count) {
  if (info == nullptr || !info->info.has_value()) return;
  try {
    info->info->Set(Views(texts, count));
  } catch (const std::bad_alloc&) {
    metrics::internal::CountOutOfMemory();
  }
}

void persia_metrics_info_unset(persia_metrics_info_t* info) {
  if (info != nullptr && info->info.has_value()) {
    info->info->Unset();
  }
}

persia_metrics_enum_t* persia_metrics_enum(const char* group, const char* name, const char* const* states, size_t count,
                                           const persia_metrics_description_t* about) {
  try {
    std::vector<std::string_view> views;
    std::string definition;
    for (size_t i = 0; i < count; ++i) {
      views.push_back(View(states[i]));
      definition.append(views.back()).append(1, '\0');
    }
    return FindOrMake<persia_metrics_enum_t>(
        group, name, std::span<const char>(definition), about, [&](const metrics::Description& of) {
          return persia_metrics_enum_t{metrics::Enum(View(group), View(name), views, of), {views.begin(), views.end()}};
        });
  } catch (const std::bad_alloc&) {
    metrics::internal::CountOutOfMemory();
    static constinit persia_metrics_enum_t counts_nothing{};
    return &counts_nothing;
  }
}

void persia_metrics_enum_set(persia_metrics_enum_t* states, const char* state) {
  if (states != nullptr && states->states.has_value()) {
    states->states->Set(View(state));
  }
}

void persia_metrics_enum_unset(persia_metrics_enum_t* states) {
  if (states != nullptr && states->states.has_value()) {
    states->states->Unset();
  }
}

int persia_metrics_enum_value(const persia_metrics_enum_t* states) {
  if (states == nullptr || !states->states.has_value()) return -1;
  const std::string value = states->states->Value();
  const auto found = std::find(states->names.begin(), states->names.end(), value);
  return value.empty() || found == states->names.end() ? -1 : static_cast<int>(found - states->names.begin());
}

persia_metrics_histogram_t* persia_metrics_histogram(const char* group, const char* name, const double* bounds,
                                                     size_t bound_count, const persia_metrics_description_t* about) {
  const std::span<const double> given = Bounds(bounds, bound_count);
  return FindOrMake<persia_metrics_histogram_t>(group, name, given, about, [&](const metrics::Description& of) {
    return metrics::Histogram(View(group), View(name), given, of);
  });
}

persia_metrics_histogram_t* persia_metrics_native_histogram(const char* group, const char* name,
                                                            const persia_metrics_native_buckets_t* buckets,
                                                            const persia_metrics_description_t* about) {
  metrics::NativeBuckets native;
  if (buckets != nullptr) {
    native = {buckets->factor, buckets->max_buckets, buckets->zero_threshold, buckets->most};
  }
  const double definition[] = {native.factor, static_cast<double>(native.max_buckets), native.zero_threshold, native.most,
                               -1};  // bounds ascend: no histogram with bounds has this definition
  return FindOrMake<persia_metrics_histogram_t>(
      group, name, std::span<const double>(definition), about,
      [&](const metrics::Description& of) { return metrics::Histogram(View(group), View(name), native, of); });
}

void persia_metrics_histogram_observe(persia_metrics_histogram_t* histogram, double value) {
  if (histogram != nullptr) {
    histogram->histogram.Observe(value);
  }
}

void persia_metrics_histogram_observe_many(persia_metrics_histogram_t* histogram, double value, uint64_t count) {
  if (histogram != nullptr) {
    histogram->histogram.Observe(value, count);
  }
}

uint64_t persia_metrics_histogram_value(const persia_metrics_histogram_t* histogram, double* sum, uint64_t* buckets,
                                        size_t bucket_count) {
  return Store(histogram == nullptr ? metrics::HistogramValue() : histogram->histogram.Value(), sum, buckets, bucket_count);
}

persia_metrics_time_cost_t* persia_metrics_time_cost(const char* group, const char* name, const double* bounds,
                                                     size_t bound_count, const persia_metrics_description_t* about) {
  const std::span<const double> given = Bounds(bounds, bound_count);
  return FindOrMake<persia_metrics_time_cost_t>(group, name, given, about, [&](const metrics::Description& of) {
    return metrics::TimeCost(View(group), View(name), given, of);
  });
}

void persia_metrics_time_cost_observe(persia_metrics_time_cost_t* time_cost, double seconds) {
  if (time_cost != nullptr) {
    time_cost->time_cost.Observe(seconds);
  }
}

void persia_metrics_time_cost_observe_many(persia_metrics_time_cost_t* time_cost, double seconds, uint64_t count) {
  if (time_cost != nullptr) {
    time_cost->time_cost.Observe(seconds, count);
  }
}

uint64_t persia_metrics_time_cost_value(const persia_metrics_time_cost_t* time_cost, double* sum, double* last,
                                        uint64_t* buckets, size_t bucket_count) {
  static constinit const metrics::TimeCost kNone;
  const metrics::TimeCostValue value = (time_cost == nullptr ? kNone : time_cost->time_cost).Value();
  StoreLast(value.last, last);
  return Store(value.histogram, sum, buckets, bucket_count);
}

persia_metrics_stream_t* persia_metrics_stream(const char* group, const char* name, const persia_metrics_description_t* about) {
  return FindOrMake<persia_metrics_stream_t>(
      group, name, about, [&](const metrics::Description& of) { return metrics::Stream(View(group), View(name), of); });
}

void persia_metrics_stream_add(persia_metrics_stream_t* stream, double value) {
  if (stream != nullptr) {
    stream->stream.Add(value);
  }
}

void persia_metrics_stream_add_many(persia_metrics_stream_t* stream, double value, uint64_t count) {
  if (stream != nullptr) {
    stream->stream.Add(value, count);
  }
}

uint64_t persia_metrics_stream_value(const persia_metrics_stream_t* stream, double* sum, double* last) {
  static constinit const metrics::Stream kNone;
  const metrics::StreamValue value = (stream == nullptr ? kNone : stream->stream).Value();
  if (sum != nullptr) {
    *sum = value.sum;
  }
  StoreLast(value.last, last);
  return value.count;
}

void persia_metrics_event(const char* type, const char* name, const persia_metrics_pair_t* metadata, size_t metadata_count) {
  try {
    std::vector<metrics::events::MetadataEntry> entries;
    for (size_t i = 0; i < metadata_count; ++i) {
      const char* value = metadata[i].value;
      entries.emplace_back(metadata[i].name == nullptr ? "" : metadata[i].name,
                           value == nullptr ? metrics::events::MetadataValue() : std::string_view(value));
    }
    metrics::events::Record(type == nullptr ? metrics::events::kDefaultType : std::string_view(type), View(name), entries);
  } catch (const std::bad_alloc&) {
    metrics::internal::CountOutOfMemory();
  }
}

uint64_t persia_metrics_event_count(const char* type, const char* name) {
  return metrics::events::Count(type == nullptr ? metrics::events::kDefaultType : std::string_view(type), View(name));
}

size_t persia_metrics_read(void (*visit)(const persia_metrics_series_t* series, void* context), void* context) {
  size_t count = 0;
  try {
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
  } catch (const std::bad_alloc&) {
    metrics::internal::CountOutOfMemory();
  }
  return count;
}

int persia_metrics_read_value(const char* group, const char* name, const persia_metrics_pair_t* labels, size_t label_count,
                              double* value) {
  try {
    const std::optional<double> found = metrics::ReadValue(View(group), View(name), Views(labels, label_count));
    StoreLast(found, value);
    return found.has_value() ? 1 : 0;
  } catch (const std::bad_alloc&) {
    metrics::internal::CountOutOfMemory();
    return 0;
  }
}

int persia_metrics_remove(const char* group, const char* name, const persia_metrics_pair_t* labels, size_t label_count) {
  try {
    return metrics::RemoveSeries(View(group), View(name), Views(labels, label_count)) ? 1 : 0;
  } catch (const std::bad_alloc&) {
    metrics::internal::CountOutOfMemory();
    return 0;
  }
}

void persia_metrics_clear(const char* group, const char* name) { metrics::ClearSeries(View(group), View(name)); }

persia_metrics_scope_t* persia_metrics_scope_begin(void) { return new persia_metrics_scope_t(); }

void persia_metrics_scope_end(persia_metrics_scope_t* scope) { delete scope; }

void persia_metrics_set_log_handler(void (*handler)(const char* line, void* context), void* context) {
  try {
    metrics::SetLogHandler(handler == nullptr ? metrics::LogHandler() : [handler, context](std::string_view line) {
      handler(std::string(line).c_str(), context);
    });
  } catch (const std::bad_alloc&) {
    metrics::internal::CountOutOfMemory();
  }
}

persia_metrics_emit_status_t persia_metrics_emit(const persia_metrics_number_t* numbers, size_t count, char* error,
                                                 size_t error_bytes) {
  metrics::benchmarkai::EmitResult result;
  try {
    std::vector<metrics::benchmarkai::Metric> given;
    for (size_t i = 0; i < count; ++i) {
      given.emplace_back(numbers[i].name == nullptr ? "" : numbers[i].name, numbers[i].value);
    }
    result = metrics::benchmarkai::Emit(given);
  } catch (const std::bad_alloc&) {
    metrics::internal::CountOutOfMemory();
    result.status = EmitStatus::kOutOfMemory;
    result.error = "out of memory";  // short enough to need none
  }
  if (error != nullptr && error_bytes > 0) {
    const size_t size = std::min(result.error.size(), error_bytes - 1);
    std::memcpy(error, result.error.data(), size);
    error[size] = '\0';
  }
  return static_cast<persia_metrics_emit_status_t>(result.status);
}
