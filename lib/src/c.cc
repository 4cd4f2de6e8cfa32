#include "persia/metrics/c.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fork_safe_mutex.h"
#include "persia/metrics/emit.h"
#include "persia/metrics/events.h"
#include "persia/metrics/init.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/stream.h"

namespace metrics = persia::metrics;

struct persia_metrics_counter {
  metrics::Counter counter;
};
struct persia_metrics_gauge {
  metrics::Gauge gauge;
};
struct persia_metrics_histogram {
  metrics::Histogram histogram;
};
struct persia_metrics_stream {
  metrics::Stream stream;
};

namespace {

std::string Text(const char* text) { return text == nullptr ? "" : text; }

metrics::Description About(const char* help, const persia_metrics_pair_t* labels, size_t count) {
  metrics::Description about{.help = Text(help)};
  for (size_t i = 0; i < count; ++i) {
    about.labels.emplace_back(Text(labels[i].name), Text(labels[i].value));
  }
  return about;
}

// The handles that were asked for. Never destroyed: they are used after main.
template <class Handle>
class Handles {
 public:
  // `make` is called for what is not there yet. Where memory is out there is one that counts nothing.
  template <class Make>
  static Handle* Of(const char* group, const char* name, metrics::LabelSet labels, const Make& make) noexcept try {
    static Handles& handles = *new Handles;
    std::sort(labels.begin(), labels.end());
    std::vector<std::string> key = {Text(group), Text(name)};
    for (auto& [label, value] : labels) {
      key.push_back(std::move(label));
      key.push_back(std::move(value));
    }
    const std::lock_guard lock(handles.mutex_);
    std::unique_ptr<Handle>& handle = handles.handles_[std::move(key)];
    if (handle == nullptr) {
      handle = std::make_unique<Handle>(make());
    }
    return handle.get();
  } catch (const std::exception&) {
    static Handle counts_nothing{};
    return &counts_nothing;
  }

 private:
  persia::metrics::ForkSafeMutex<Handles> mutex_;
  std::map<std::vector<std::string>, std::unique_ptr<Handle>> handles_;
};

}  // namespace

int persia_metrics_init(const char* job_name, const char* role, int replica) {
  try {
    metrics::Options options{.job_name = Text(job_name), .role = Text(role)};
    if (replica >= 0) {
      options.replica = replica;
    }
    return metrics::Init(options).exporting ? 1 : 0;
  } catch (const std::exception&) {
    return 0;
  }
}

persia_metrics_counter_t* persia_metrics_counter(const char* group, const char* name, const char* help,
                                                 const persia_metrics_pair_t* labels, size_t label_count) {
  const metrics::Description about = About(help, labels, label_count);
  return Handles<persia_metrics_counter_t>::Of(
      group, name, about.labels, [&] { return persia_metrics_counter_t{metrics::Counter(Text(group), Text(name), about)}; });
}

void persia_metrics_counter_add(persia_metrics_counter_t* counter, double by) {
  if (counter != nullptr) {
    counter->counter.Increment(by);
  }
}

persia_metrics_gauge_t* persia_metrics_gauge(const char* group, const char* name, const char* help,
                                             const persia_metrics_pair_t* labels, size_t label_count) {
  const metrics::Description about = About(help, labels, label_count);
  return Handles<persia_metrics_gauge_t>::Of(
      group, name, about.labels, [&] { return persia_metrics_gauge_t{metrics::Gauge(Text(group), Text(name), about)}; });
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

persia_metrics_histogram_t* persia_metrics_histogram(const char* group, const char* name, const char* help,
                                                     const double* bounds, size_t bound_count,
                                                     const persia_metrics_pair_t* labels, size_t label_count) {
  const metrics::Description about = About(help, labels, label_count);
  return Handles<persia_metrics_histogram_t>::Of(group, name, about.labels, [&] {
    const auto given = bounds == nullptr ? metrics::DefaultSecondsBounds() : std::span<const double>(bounds, bound_count);
    return persia_metrics_histogram_t{metrics::Histogram(Text(group), Text(name), given, about)};
  });
}

void persia_metrics_histogram_observe(persia_metrics_histogram_t* histogram, double value) {
  if (histogram != nullptr) {
    histogram->histogram.Observe(value);
  }
}

persia_metrics_stream_t* persia_metrics_stream(const char* group, const char* name, const char* help,
                                               const persia_metrics_pair_t* labels, size_t label_count) {
  const metrics::Description about = About(help, labels, label_count);
  return Handles<persia_metrics_stream_t>::Of(
      group, name, about.labels, [&] { return persia_metrics_stream_t{metrics::Stream(Text(group), Text(name), about)}; });
}

void persia_metrics_stream_add(persia_metrics_stream_t* stream, double value) {
  if (stream != nullptr) {
    stream->stream.Add(value);
  }
}

void persia_metrics_event(const char* name, const char* type, const persia_metrics_pair_t* metadata, size_t metadata_count) {
  try {
    std::vector<metrics::events::MetadataEntry> entries;
    for (size_t i = 0; i < metadata_count; ++i) {
      const char* value = metadata[i].value;
      entries.emplace_back(metadata[i].name == nullptr ? "" : metadata[i].name,
                           value == nullptr ? metrics::events::MetadataValue() : std::string_view(value));
    }
    metrics::events::Record(Text(name), type == nullptr ? metrics::events::kDefaultType : std::string_view(type), entries);
  } catch (const std::exception&) {
    return;  // out of memory, and nothing is left to say it with
  }
}

int persia_metrics_emit(const persia_metrics_number_t* numbers, size_t count, char* error, size_t error_bytes) {
  metrics::benchmarkai::EmitResult result;
  try {
    std::vector<metrics::benchmarkai::Metric> given;
    for (size_t i = 0; i < count; ++i) {
      given.emplace_back(numbers[i].name == nullptr ? "" : numbers[i].name, numbers[i].value);
    }
    result = metrics::benchmarkai::Emit(given);
  } catch (const std::exception& thrown) {
    result.status = metrics::benchmarkai::EmitStatus::kFifoCannotBeWritten;
    result.error = thrown.what();
  }
  if (error != nullptr && error_bytes > 0) {
    const size_t size = std::min(result.error.size(), error_bytes - 1);
    std::memcpy(error, result.error.data(), size);
    error[size] = '\0';
  }
  return static_cast<int>(result.status);
}
