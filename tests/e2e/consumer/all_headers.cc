#include <persia/metrics/c.h>
#include <persia/metrics/internal/bridge.h>
#include <persia/metrics/internal/process.h>
#include <persia/metrics/metrics.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

// A use of each template and inline function.
namespace metrics = persia::metrics;

class Handler : public metrics::events::EventHandler {
 public:
  void Record(const metrics::events::Event& event) override { seen = seen && !event.name.empty(); }
  bool seen = true;
};
class Sink : public metrics::MetricHandler {
 public:
  void Emit(const metrics::MetricData& data) override { sum += data.value; }
  double sum = 0;
};

int main() {
  metrics::Options options;
  options.job_name = "seventeen";
  metrics::Init(options);
  metrics::Description about;
  about.help = "Help.";
  metrics::Counter counter("g", "counter", about);
  counter.Increment();
  counter.Increment(2U);
  counter.Increment(int64_t{2});
  counter.Increment(short{1});
  counter.Increment(0.5);
  metrics::Gauge gauge("g", "gauge", metrics::GaugeMerge::kSum, about);
  gauge.Set(2);
  gauge.Add(1);
  gauge.Subtract(1);
  metrics::Histogram histogram("g", "histogram", {0.1, 1, 10});
  histogram.Observe(0.5);
  histogram.Observe(0.5, 2);
  const std::array<double, 2> bounds = {1, 2};
  const double array[] = {1, 2, 3};
  metrics::Histogram("g", "array", bounds).Observe(1);
  metrics::Histogram("g", "c array", array, about).Observe(1);
  metrics::Histogram("g", "vector", metrics::LinearBounds(1, 1, 3)).Observe(1);
  metrics::Histogram("g", "native", metrics::NativeBuckets{}).Observe(1);
  metrics::TimeCost cost("g", "cost", {0.5, 1}, about);
  { metrics::ScopedTimer<metrics::TimeCost> timer(cost); }
  metrics::Stream stream("g", "stream");
  stream.Add(-1);
  stream.Add(2, 3);
  metrics::Family<metrics::Counter> family("g", "family");
  family.With({{"a", "b"}}).Increment();
  metrics::Family<metrics::Histogram>("g", "histograms", {1, 2}).With({{"a", "b"}}).Observe(1);
  metrics::Family<metrics::TimeCost>("g", "costs").With({{"a", "b"}, {"c", "d"}}).Observe(1);
  metrics::Family<metrics::Stream>("g", "streams").With({{"a", "b"}}).Add(1);
  metrics::catalog::IndexMissCount().Increment();
  metrics::catalog::NanCount().With({{"feat", "user"}}).Increment();
  metrics::catalog::LookupRpcTimeCost().Observe(0.5);
  auto sink = std::make_shared<Sink>();
  metrics::Configure(sink, "sunk");
  metrics::GetStream("sunk").AddValue("value", 3);
  metrics::getStream("sunk").AddValue("value", 4);
  metrics::PutMetric("put", 1, "g");
  { const metrics::Prof prof("scope", "g"); }
  auto profiled = metrics::Profiled(
      "call", [](int by) { return by + 1; }, "g");
  auto handler = std::make_shared<Handler>();
  metrics::events::Configure(handler, "handled");
  metrics::events::Record("handled", "event", {{"n", int64_t{1}}, {"t", "text"}, {"d", 0.5}});
  metrics::events::Record("event");
  metrics::SetLogHandler({});
  metrics::SetCallbackPeriod(std::chrono::milliseconds(20));
  metrics::Gauge("g", "called").SetFunction([] { return 1.0; });
  metrics::Counter("g", "total").SetFunction([] { return 1.0; });
  metrics::Info("g", "build").Set({{"version", "1"}});
  metrics::Enum phase("g", "phase", {"warm", "train"}, about);
  phase.Set("train");
  gauge.Unset();
  gauge.Set(2);
  metrics::benchmarkai::Emit({{"a", 1}});
  const metrics::Snapshot snapshot = metrics::ReadSnapshot();
  const bool good = counter.Value() == 6.5 && gauge.Value() == 2 && histogram.Value().count == 3 &&
                    cost.Value().last.has_value() && stream.Value().sum == 5 &&
                    snapshot.Value("g", "family", {{"a", "b"}}) == 1 && metrics::ReadValue("g", "histogram") == 3 &&
                    sink->sum == 7 && profiled(1) == 2 && handler->seen && phase.Value() == "train" &&
                    metrics::events::Count("handled", "event") == 1 &&
                    persia_metrics_version_number() == PERSIA_METRICS_VERSION_NUMBER;
  return good ? 0 : 1;
}
