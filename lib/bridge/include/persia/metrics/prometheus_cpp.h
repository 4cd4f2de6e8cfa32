// The bridge between this process's metrics and prometheus-cpp, in both directions. Link persia::metrics_prometheus_cpp (with
// persia::metrics_shared: persia::metrics_shared_prometheus_cpp).
//
// A job that is instrumented with prometheus-cpp gains the agent by two lines:
//
//   #include <persia/metrics/prometheus_cpp.h>
//   persia::metrics::RegistryCopy copy(registry);  // the std::shared_ptr<prometheus::Registry> that it has
//
// and a job that has an Exposer, or a Gateway, shows the metrics of this library there, too, by one:
//
//   exposer.RegisterCollectable(persia::metrics::AsCollectable());
//
// Who does both shows what is copied twice where one Exposer has the registry as well: give it one of the two.
// Thread safety: any function, any thread. No exception comes out of them.
#pragma once

#include <chrono>
#include <memory>

#include "persia/metrics/export.h"

namespace prometheus {
class Collectable;
}

namespace persia::metrics {

// This process's metrics: counters, gauges that were set, histograms, the last value of each stream as a gauge, and the counts
// of events as `persia_events_total` with the labels `event` and `type`. Names and labels are those that the agent gives
// without rules: `<group>_<name>`, `_` for what Prometheus cannot take; what would meet in one series is told apart by a label
// `source`. The values are those of now. Nothing, if metrics are disabled.
//
// Always the same object, which lives as long as the process: an Exposer or a Gateway does not keep what it is given.
PERSIA_METRICS_API std::shared_ptr<prometheus::Collectable> AsCollectable() noexcept;

// Copies a prometheus-cpp registry, or any other Collectable, into this process's segment: at once, then every `interval`, and
// a last time when it is destroyed or the program exits. An agent shows it as if it were counted here, to the last value.
//
// Names stay as they are (group ""), with labels and help. What was counted before the first copy counts. Series that come are
// taken up; of one that goes, the last values stay.
//   counters    by the difference to the last copy; one that fell has begun again from zero, and all of it is added
//   gauges      as they are; untyped metrics too, and info metrics as a 1 named `<name>_info`
//   histograms  by the differences of buckets and sum; a cumulative count that fell has begun again. The series of a family
//   share
//               their bounds, at most 500: one with others is refused with a line
//   summaries   as the counters `<name>_count` and `<name>_sum` and the gauges `<name>{quantile="0.5"}`; the agent owns that
//               label and shows it as `exported_quantile`, unless a rule says otherwise. A counter cannot fall: where
//               observations are negative, `<name>_sum` stays at the highest that the sum has been, and at 0 below that
//
// One for each registry, for as long as the process counts: a second one would count all of it again. A forked child copies
// nothing; what it counts on its own goes into a registry of its own. A registry that throws or blocks costs its copy only, but
// for a destructor, which waits for the copy that is under way. At exit all copies together are waited for two seconds at most;
// one for which there could be no thread, neither before nor then, is made in place, for as long as it takes.
class PERSIA_METRICS_API RegistryCopy {
 public:
  // An `interval` is from 10 ms to a day; one beyond is taken for the nearer of these.
  explicit RegistryCopy(std::shared_ptr<prometheus::Collectable> registry,
                        std::chrono::milliseconds interval = std::chrono::seconds(1)) noexcept;
  ~RegistryCopy();
  RegistryCopy(const RegistryCopy&) = delete;
  RegistryCopy& operator=(const RegistryCopy&) = delete;

  // Copies what is there now. In any thread; waits for a copy that is under way.
  void CopyNow() noexcept;

  class Copier;

 private:
  std::shared_ptr<Copier> copier_;  // null: there is nothing to copy, or no memory for it
};

}  // namespace persia::metrics
