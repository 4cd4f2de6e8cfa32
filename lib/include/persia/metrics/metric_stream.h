// torchelastic's metrics API: values are added to the streams of a group, and a handler takes each of them somewhere.
//
//   persia::metrics::MetricStream stream = persia::metrics::GetStream("my_app");
//   stream.AddValue("calculate_latency", 12.5);
//
// A group has the handler that Configure gave it, else the default one. That is at first the one that exports: the agent then
// shows each (group, name) as its rules say, without one as a gauge of the last value. Where metrics are disabled it is the
// null handler. For a metric that is added to in an inner loop, a Stream (stream.h) saves looking up the name.
//
// As in torchelastic a stream keeps the handler that its group had when it was asked for; Configure changes those asked for
// later. A handler that throws costs the value that it was given, and one line in the log; one that blocks holds up its own
// caller only. Source: https://pytorch.org/docs/stable/elastic/metrics.html Thread safety: any function, any thread. Handlers
// are called by the threads that add values, several at once.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "persia/metrics/export.h"

namespace persia::metrics {

// The group of what torchelastic measures itself, and the default of PutMetric.
inline constexpr std::string_view kTorchelasticGroup = "torchelastic";

struct MetricData {
  double timestamp = 0;  // in seconds since 1970
  std::string_view group_name;
  std::string_view name;
  double value = 0;
};

// Takes values somewhere. What `data` points to is good during the call.
class PERSIA_METRICS_API MetricHandler {
 public:
  MetricHandler() = default;
  virtual ~MetricHandler();
  MetricHandler(const MetricHandler&) = delete;
  MetricHandler& operator=(const MetricHandler&) = delete;
  virtual void Emit(const MetricData& data) = 0;
};

// Takes them nowhere.
class PERSIA_METRICS_API NullMetricHandler : public MetricHandler {
 public:
  void Emit(const MetricData& data) override;
};

// Prints a line for each to stdout: `[1574213883.4182858][my_app]: my_metric=<value>`.
class PERSIA_METRICS_API ConsoleMetricHandler : public MetricHandler {
 public:
  void Emit(const MetricData& data) override;
};
using ConsoleMetricsHandler = ConsoleMetricHandler;  // torchelastic's documents have both names

// Keeps them in this process's segment, from which the agent exports them.
class PERSIA_METRICS_API ExportMetricHandler : public MetricHandler {
 public:
  void Emit(const MetricData& data) override;
};

// The handler of one group, from now on. A null pointer gives the group back to the default one.
PERSIA_METRICS_API void Configure(std::shared_ptr<MetricHandler> handler, std::string_view group) noexcept;
// The handler of all groups that have none of their own. A null pointer: the one from the beginning.
PERSIA_METRICS_API void Configure(std::shared_ptr<MetricHandler> handler) noexcept;

// A group's values, and the handler that takes them.
class PERSIA_METRICS_API MetricStream {
 public:
  MetricStream(std::string_view group, std::shared_ptr<MetricHandler> handler);

  void AddValue(std::string_view name, double value) noexcept;
  [[nodiscard]] const std::string& group_name() const { return group_; }

 private:
  std::string group_;
  std::shared_ptr<MetricHandler> handler_;
  bool exports_;
  bool ignores_;
};

PERSIA_METRICS_API MetricStream GetStream(std::string_view group);
inline MetricStream getStream(std::string_view group) { return GetStream(group); }  // as torchelastic spells it

// Adds one value, as `GetStream(group).AddValue(name, value)` does.
PERSIA_METRICS_API void PutMetric(std::string_view name, double value, std::string_view group = kTorchelasticGroup) noexcept;

}  // namespace persia::metrics
