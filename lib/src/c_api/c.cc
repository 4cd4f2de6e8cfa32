#include "persia/metrics/c.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "fork_locks.h"
#include "persia/metrics/emit.h"
#include "persia/metrics/events.h"
#include "persia/metrics/init.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/prof.h"
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

// The handles of one kind that were requested, by group, name and labels. Never destroyed: they are used after main.
template <class Handle>
using Handles = std::map<std::vector<std::string>, std::unique_ptr<Handle>>;

template <class Handle>
constinit Handles<Handle>* handles = nullptr;  // guarded by the lock

// Finds the handle, or makes it by `make(about)`. If memory runs out, returns a handle that counts nothing.
template <class Handle, class Make>
Handle* FindOrMake(const char* group, const char* name, const char* help, const persia_metrics_pair_t* labels, size_t count,
                   const Make& make) noexcept {
  using persia::metrics::ForkLock;
  try {
    const metrics::Description about = About(help, labels, count);
    metrics::LabelSet sorted = about.labels;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::string> key = {Text(group), Text(name)};
    for (auto& [label, value] : sorted) {
      key.push_back(std::move(label));
      key.push_back(std::move(value));
    }
    persia::metrics::MutexLock lock(persia::metrics::MutexOf(ForkLock::kHandlesInC));
    if (handles<Handle> == nullptr) {
      handles<Handle> = new Handles<Handle>;
    }
    std::unique_ptr<Handle>& handle = (*handles<Handle>)[std::move(key)];
    if (handle == nullptr) {
      handle.reset(new Handle{make(about)});
    }
    return handle.get();
  } catch (const std::bad_alloc&) {
    metrics::internal::CountOutOfMemory();
    static constinit Handle counts_nothing{};
    return &counts_nothing;
  }
}

std::string_view View(const char* text) { return text == nullptr ? std::string_view() : text; }

}  // namespace

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

persia_metrics_counter_t* persia_metrics_counter(const char* group, const char* name, const char* help,
                                                 const persia_metrics_pair_t* labels, size_t label_count) {
  return FindOrMake<persia_metrics_counter_t>(group, name, help, labels, label_count, [&](const metrics::Description& about) {
    return metrics::Counter(View(group), View(name), about);
  });
}

void persia_metrics_counter_add(persia_metrics_counter_t* counter, double by) {
  if (counter != nullptr) {
    counter->counter.Increment(by);
  }
}

persia_metrics_gauge_t* persia_metrics_gauge(const char* group, const char* name, const char* help,
                                             const persia_metrics_pair_t* labels, size_t label_count) {
  return FindOrMake<persia_metrics_gauge_t>(group, name, help, labels, label_count, [&](const metrics::Description& about) {
    return metrics::Gauge(View(group), View(name), about);
  });
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
  return FindOrMake<persia_metrics_histogram_t>(group, name, help, labels, label_count, [&](const metrics::Description& about) {
    const auto given = bounds == nullptr ? metrics::DefaultSecondsBounds() : std::span<const double>(bounds, bound_count);
    return metrics::Histogram(View(group), View(name), given, about);
  });
}

persia_metrics_histogram_t* persia_metrics_native_histogram(const char* group, const char* name, const char* help,
                                                            double factor, unsigned short max_buckets, double zero_threshold,
                                                            double most, const persia_metrics_pair_t* labels,
                                                            size_t label_count) {
  return FindOrMake<persia_metrics_histogram_t>(group, name, help, labels, label_count, [&](const metrics::Description& about) {
    const metrics::NativeBuckets buckets{
        .factor = factor, .max_buckets = max_buckets, .zero_threshold = zero_threshold, .most = most};
    return metrics::Histogram(View(group), View(name), buckets, about);
  });
}

void persia_metrics_histogram_observe(persia_metrics_histogram_t* histogram, double value) {
  if (histogram != nullptr) {
    histogram->histogram.Observe(value);
  }
}

persia_metrics_stream_t* persia_metrics_stream(const char* group, const char* name, const char* help,
                                               const persia_metrics_pair_t* labels, size_t label_count) {
  return FindOrMake<persia_metrics_stream_t>(group, name, help, labels, label_count, [&](const metrics::Description& about) {
    return metrics::Stream(View(group), View(name), about);
  });
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
    metrics::events::Record(View(name), type == nullptr ? metrics::events::kDefaultType : std::string_view(type), entries);
  } catch (const std::bad_alloc&) {
    metrics::internal::CountOutOfMemory();
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
  } catch (const std::bad_alloc&) {
    metrics::internal::CountOutOfMemory();
    result.status = metrics::benchmarkai::EmitStatus::kOutOfMemory;
    result.error = "out of memory";  // short enough to need none
  }
  if (error != nullptr && error_bytes > 0) {
    const size_t size = std::min(result.error.size(), error_bytes - 1);
    std::memcpy(error, result.error.data(), size);
    error[size] = '\0';
  }
  return static_cast<int>(result.status);
}
