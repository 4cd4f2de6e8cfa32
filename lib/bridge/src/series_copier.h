// Adds the increase of a prometheus-cpp registry since the last copy to this process's metrics.
//
// Not thread-safe: the caller holds a lock.
#pragma once

#include <prometheus/metric_family.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "persia/metrics/instruments.h"
#include "persia/metrics/internal/bridge.h"
#include "persia/metrics/prometheus_cpp.h"

namespace persia::metrics {
inline namespace abi_1 {

class SeriesCopier {
 public:
  explicit SeriesCopier(CountedBy counted_by) : shows_totals_(counted_by == CountedBy::kOthers) {}

  // Copies `families`. If a series occurs twice, the first one is copied.
  void Copy(const std::vector<prometheus::MetricFamily>& families);

 private:
  using Labels = std::vector<prometheus::ClientMetric::Label>;

  // Each has the series in this process's metrics, and the values that were copied last.
  struct CounterCopy {
    Counter to;
    double last = 0;
    void Update(double now);
  };
  struct GaugeCopy {
    Gauge to;
  };
  struct HistogramCopy {
    internal::BucketedHistogram to;
    std::vector<double> bounds;
    // Cumulative counts: those of the registry, and those that were added here.
    std::vector<uint64_t> last;
    std::vector<uint64_t> added;
    double last_sum = 0;
    void Update(std::vector<uint64_t> now, double sum);
  };
  struct SummaryCopy {
    Counter count;
    Counter sum;
    uint64_t last_count = 0;
    double last_sum = 0;
    std::vector<double> quantiles = {};
    std::vector<Gauge> values = {};  // of the quantiles
    void Update(uint64_t count_now, double sum_now);
  };
  struct Series {
    std::variant<CounterCopy, GaugeCopy, HistogramCopy, SummaryCopy> copy;
    uint64_t round = 0;  // of its last copy
  };

  void CopySeries(const prometheus::MetricFamily& family, const prometheus::ClientMetric& metric, Labels labels);
  [[nodiscard]] Series MakeSeries(const prometheus::MetricFamily& family, const prometheus::ClientMetric& metric) const;
  void Update(const prometheus::MetricFamily& family, const prometheus::ClientMetric& metric, Series* series);
  static void UpdateSummary(const prometheus::MetricFamily& family, const prometheus::ClientMetric& metric,
                            SummaryCopy* summary);

  const bool shows_totals_;
  // The type is part of the key: a family whose type changes becomes a second one, which the registry refuses for its name.
  std::map<std::pair<std::string, prometheus::MetricType>, std::map<Labels, Series>> families_;
  uint64_t round_ = 0;
  std::atomic<bool> bounds_logged_ = false;
  std::atomic<bool> left_out_logged_ = false;
};

}  // namespace abi_1
}  // namespace persia::metrics
