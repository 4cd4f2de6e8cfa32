// The bridge between this process's metrics and prometheus-cpp, in both directions. Link persia::metrics_prometheus_cpp, or
// persia::metrics_shared_prometheus_cpp with the shared library.
//
// With two lines, the agent exports the metrics of a program that is instrumented with prometheus-cpp:
//
//   #include <persia/metrics/prometheus_cpp.h>
//   persia::metrics::RegistryCopy copy(registry);  // a std::shared_ptr<prometheus::Registry>
//
// With one line, an Exposer or a Gateway of the program exports the metrics of this library:
//
//   exposer.RegisterCollectable(persia::metrics::AsCollectable());
//
// Do not register both AsCollectable() and a copied registry with one Exposer: it would export the copied metrics twice.
//
// Thread safety: any function, from any thread. Functions throw nothing.
#pragma once

#include <chrono>
#include <memory>

#include "persia/metrics/export.h"

namespace prometheus {
class Collectable;
}

namespace persia::metrics {
inline namespace abi_1 {

// This process's metrics: counters, gauges that were set, histograms, the last value of each stream as a gauge, and the counts
// of events as `persia_events_total` with the labels `event` and `type`. Names and labels are the agent's without rules:
// `<group>_<name>`, with `_` for characters that Prometheus does not allow. If two series would become one, the second gets a
// label `source`. Each collection reads the current values. It returns nothing if metrics are disabled.
//
// Returns the same object at each call. The object lives as long as the process, since an Exposer or a Gateway does not own it.
PERSIA_METRICS_API std::shared_ptr<prometheus::Collectable> AsCollectable() noexcept;

// Where the counters of a registry are counted.
enum class CountedBy {
  // In this process: the counters of a prometheus::Registry. The agent adds up those of all processes, also of ended ones.
  kThisProcess,
  // Elsewhere, for example by a network card, whose bytes each process reads. The total is exported as it is, once: a counter
  // is copied as a gauge, and the agent exports the highest value of the living processes. Histograms and summaries are left
  // out, which is logged.
  kOthers,
};

// Copies a prometheus-cpp registry, or any other Collectable, to this process's segment: immediately, then every `interval`,
// and a last time when this object is destroyed or the program exits. The agent exports the copied metrics like the process's
// own.
//
// Names (with group ""), labels and help stay as they are. Values from before the first copy are included. New series are
// copied too; a series that disappears keeps its last values.
//
//   counters    The increase since the last copy is added. If a counter fell, it was reset, and its whole value is added.
//   gauges      The value is copied. Untyped metrics are copied as gauges, info metrics as a gauge `<name>_info` of value 1.
//   histograms  The increase of buckets and sum is added. If a cumulative count fell, the histogram was reset. All series of
//               a family must have the same bounds, at most 500; a series with others is refused, which is logged.
//   summaries   Becomes the counters `<name>_count` and `<name>_sum` and the gauges `<name>{quantile="0.5"}`. The label
//               `quantile` is reserved, so without a rule the agent exports it as `exported_quantile`. A counter cannot fall:
//               with negative observations, `<name>_sum` stays at the highest value of the sum, and never falls below 0.
//
// All this is for counters of this process. Those of a Collectable of your own may be totals that others count: CountedBy.
//
// Make one object for each registry, and keep it as long as the process records: a second one would add all values again. A
// forked child copies nothing; it needs its own registry and RegistryCopy. A registry that throws or blocks affects only its
// own copy, except that the destructor waits for a copy in progress. At exit, all last copies together get two seconds. If no
// thread can be started for a copy, it is made in the exiting thread, without a time limit.
class PERSIA_METRICS_API RegistryCopy {
 public:
  // `interval` is clamped to 10 ms and a day.
  explicit RegistryCopy(std::shared_ptr<prometheus::Collectable> registry,
                        std::chrono::milliseconds interval = std::chrono::seconds(1)) noexcept;
  // The same for counters that others count.
  RegistryCopy(std::shared_ptr<prometheus::Collectable> registry, CountedBy counted_by,
               std::chrono::milliseconds interval = std::chrono::seconds(1)) noexcept;
  // Copies the registry a last time. Waits for a copy in progress.
  ~RegistryCopy();
  RegistryCopy(const RegistryCopy&) = delete;
  RegistryCopy& operator=(const RegistryCopy&) = delete;

  // Copies the registry now, after any copy in progress.
  void CopyNow() noexcept;

  class Copier;  // not for users

 private:
  std::shared_ptr<Copier> copier_;  // null: there is nothing to copy, or no memory for it
};

}  // namespace abi_1
}  // namespace persia::metrics
