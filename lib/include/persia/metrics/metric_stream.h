// torchelastic's metrics API: a program adds values to the metric stream of a group, and the group's handler receives each
// value.
//
//   persia::metrics::MetricStream stream = persia::metrics::GetStream("my_app");
//   stream.AddValue("calculate_latency", 12.5);
//
// Configure sets a group's handler and the default handler of the other groups. Without Configure the default is
// ExportMetricHandler, or NullMetricHandler if metrics are disabled. The agent exports each (group, name) as its rules say;
// without a rule, as a gauge of the last value. In an inner loop use a Stream (stream.h), which saves the lookup of the name.
//
// As in torchelastic, a MetricStream keeps the handler that its group had when GetStream was called; a later Configure does not
// change it. If a handler throws, its value is lost, and the first such failure is logged. A handler that blocks delays only
// the thread that called it.
//
// Source: https://pytorch.org/docs/stable/elastic/metrics.html
// Thread safety: any function, from any thread. A handler runs in the threads that add values, several at once.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "persia/metrics/export.h"

namespace persia::metrics {
inline namespace abi_1 {

// The group of torchelastic's own metrics, and the default group of PutMetric.
inline constexpr std::string_view kTorchelasticGroup = "torchelastic";

// A value that was added to a metric stream. The texts are not owned.
struct MetricData {
  double timestamp = 0;         // in seconds since 1970
  std::string_view group_name;  // the stream's group
  std::string_view name;        // the metric's name in the group
  double value = 0;             // any double, including NaN and infinities, in the unit that the name implies
};

// Receives the values of the groups that it is configured for.
class PERSIA_METRICS_API MetricHandler {
 public:
  MetricHandler() = default;
  virtual ~MetricHandler();
  MetricHandler(const MetricHandler&) = delete;
  MetricHandler& operator=(const MetricHandler&) = delete;
  // Handles one value, in the thread that added it. The texts of `data` are valid during the call only.
  virtual void Emit(const MetricData& data) = 0;
};

// Drops values.
class PERSIA_METRICS_API NullMetricHandler : public MetricHandler {
 public:
  // Does nothing.
  void Emit(const MetricData& data) override;
};

// Prints a line for each value to stdout: `[1574213883.4182858][my_app]: my_metric=<value>`.
class PERSIA_METRICS_API ConsoleMetricHandler : public MetricHandler {
 public:
  // Prints the value, and flushes stdout.
  void Emit(const MetricData& data) override;
};
using ConsoleMetricsHandler = ConsoleMetricHandler;  // torchelastic's documents use both names

// Records values in this process's segment, from which the agent exports them.
class PERSIA_METRICS_API ExportMetricHandler : public MetricHandler {
 public:
  // Adds the value to the stream of its group and name. The segment keeps no timestamp.
  void Emit(const MetricData& data) override;
};

// Sets the handler of `group`. A null `handler` returns the group to the default handler. If memory runs out, nothing changes,
// and one line is logged.
PERSIA_METRICS_API void Configure(std::shared_ptr<MetricHandler> handler, std::string_view group) noexcept;
// Sets the default handler, for groups without their own. A null `handler` restores the initial one.
PERSIA_METRICS_API void Configure(std::shared_ptr<MetricHandler> handler) noexcept;

// Passes values to the handler of a group.
class PERSIA_METRICS_API MetricStream {
 public:
  // A metric stream of `group`. A null `handler` exports the values. If memory runs out, the stream drops its values.
  MetricStream(std::string_view group, std::shared_ptr<MetricHandler> handler) noexcept;

  // Passes `value` of the metric `name` to the handler, with the current time.
  void AddValue(std::string_view name, double value) noexcept;
  // The group of the values.
  [[nodiscard]] const std::string& group_name() const { return group_; }

 private:
  std::string group_;
  std::shared_ptr<MetricHandler> handler_;
  bool exports_;
  bool ignores_;
};

// The metric stream of `group`, with the handler that the group has now.
[[nodiscard]] PERSIA_METRICS_API MetricStream GetStream(std::string_view group) noexcept;
// The same, in torchelastic's spelling.
inline MetricStream getStream(std::string_view group) noexcept { return GetStream(group); }

// The same as `GetStream(group).AddValue(name, value)`.
PERSIA_METRICS_API void PutMetric(std::string_view name, double value, std::string_view group = kTorchelasticGroup) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics
