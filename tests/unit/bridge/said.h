// A Collectable with the families that a test sets.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace persia::metrics::tests {

constexpr std::chrono::hours kNever(1);  // no periodic copy: one immediately, and one at its end

// Thread safety: any method, any thread.
class Said : public prometheus::Collectable {
 public:
  explicit Said(std::vector<prometheus::MetricFamily> families = {}) : families_(std::move(families)) {}
  void Say(std::vector<prometheus::MetricFamily> families) {
    const std::lock_guard lock(mutex_);
    families_ = std::move(families);
  }
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override {
    const std::lock_guard lock(mutex_);
    return families_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<prometheus::MetricFamily> families_;
};

inline prometheus::MetricFamily CounterFamily(const std::string& name, double value,
                                              std::vector<prometheus::ClientMetric::Label> labels = {}) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = value;
  return {name, "", prometheus::MetricType::Counter, {metric}};
}

}  // namespace persia::metrics::tests
