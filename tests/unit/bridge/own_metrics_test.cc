// This process's own metrics in an Exposer.
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "persia/metrics/events.h"
#include "persia/metrics/family.h"
#include "persia/metrics/prometheus_cpp.h"
#include "persia/metrics/stream.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

std::string Exposed() { return prometheus::TextSerializer().Serialize(AsCollectable()->Collect()); }

class OwnMetricsTest : public WorkerTest {
 protected:
  // Runs `body` in a process without settings of metrics; its expectations must hold.
  void Alone(const std::function<void()>& body) {
    const auto outcome = RunBareWorker(body);
    EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
    error_output_ = outcome.error_output;
  }
  std::string error_output_;
};

TEST_F(OwnMetricsTest, ShowsEveryKindAsTheAgentNamesIt) {
  Alone([] {
    Counter batches("my_app", "batches", {.help = "Batches.", .labels = {{"phase", "warm"}}});
    batches.Increment(3);
    batches.Increment(0.5);
    Counter("persia", "nan_count").Increment(uint64_t{1} << 40);
    Gauge("my_app", "loss").Set(-0.25);
    Gauge never_set("my_app", "never_set");
    Histogram cost("my_app", "cost", std::vector<double>{0.5, 1, 2}, {.help = "Cost."});
    for (const double value : {0.25, 0.5, 1.5, 1.75, 64.0}) {
      cost.Observe(value);
    }
    Stream latency("", "latency");
    Stream no_value("", "no_value");
    latency.Add(7);
    latency.Add(12.5);
    events::Record("my_app", "checkpoint");
    events::Record("my_app", "checkpoint");
    EXPECT_EQ(Exposed(),
              "# TYPE latency gauge\n"
              "latency 12.5\n"
              "# HELP my_app_batches Batches.\n"
              "# TYPE my_app_batches counter\n"
              "my_app_batches{phase=\"warm\"} 3.5\n"
              "# HELP my_app_cost Cost.\n"
              "# TYPE my_app_cost histogram\n"
              "my_app_cost_count 5\n"
              "my_app_cost_sum 68\n"
              "my_app_cost_bucket{le=\"0.5\"} 2\n"
              "my_app_cost_bucket{le=\"1\"} 2\n"
              "my_app_cost_bucket{le=\"2\"} 4\n"
              "my_app_cost_bucket{le=\"+Inf\"} 5\n"
              "# TYPE my_app_loss gauge\n"
              "my_app_loss -0.25\n"
              "# TYPE nan_count counter\n"
              "nan_count 1099511627776\n"
              "# HELP persia_events_total Events that the job recorded.\n"
              "# TYPE persia_events_total counter\n"
              "persia_events_total{event=\"checkpoint\",type=\"my_app\"} 2\n");
  });
}

TEST_F(OwnMetricsTest, AddsUpWhatAllThreadsCountedAlsoThoseThatHaveEnded) {
  Alone([] {
    constexpr int kThreads = 4;
    constexpr int kRounds = 20000;
    Counter counter("g", "c");
    Histogram histogram("g", "h", std::vector<double>{1});
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([=]() mutable {
        for (int round = 0; round < kRounds; ++round) {
          counter.Increment();
          counter.Increment(0.5);
          histogram.Observe(round % 2 * 2);
        }
      });
    }
    double before = 0;
    for (int i = 0; i < 50; ++i) {
      const auto families = AsCollectable()->Collect();
      ASSERT_EQ(families.size(), 2U);
      EXPECT_GE(families[0].metric.at(0).counter.value, before);
      before = families[0].metric.at(0).counter.value;
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    const auto families = AsCollectable()->Collect();
    EXPECT_EQ(families[0].metric.at(0).counter.value, kThreads * kRounds * 1.5);
    EXPECT_EQ(families[1].metric.at(0).histogram.sample_count, uint64_t{kThreads * kRounds});
    EXPECT_EQ(families[1].metric.at(0).histogram.bucket.at(0).cumulative_count, uint64_t{kThreads * kRounds / 2});
    EXPECT_EQ(families[1].metric.at(0).histogram.sample_sum, kThreads * kRounds);
  });
}

TEST_F(OwnMetricsTest, HostileTextStaysInItsPlace) {
  Alone([] {
    Counter("a b", "9\n\xff{}", {.help = "one\ntwo \\ \xff", .labels = {{"le", "x\n\"\\"}, {"job", ""}, {"__ü", "\xff"}}})
        .Increment();
    EXPECT_EQ(Exposed(),
              "# HELP a_b_9____ one\\ntwo \\\\ \xef\xbf\xbd\n"
              "# TYPE a_b_9____ counter\n"
              "a_b_9____{_=\"\xef\xbf\xbd\",exported_le=\"x\\n\\\"\\\\\"} 1\n");
  });
}

TEST_F(OwnMetricsTest, WhatMeetsInOneNameIsToldApart) {
  Alone([] {
    Counter("a", "b_c").Increment(1);
    Counter("a_b", "c").Increment(2);
    Gauge("", "a b c").Set(3);
    Histogram("", "h", std::vector<double>{}).Observe(1);
    Counter("", "h_count").Increment(5);
    double value = 6;
    for (const char* label : {"地", "区", "类"}) Counter("", "n", {.labels = {{label, "x"}}}).Increment(value++);
    EXPECT_EQ(Exposed(),
              "# TYPE a_b_c counter\n"
              "a_b_c 1\n"
              "a_b_c{source=\"a_b/c\"} 2\n"
              "# TYPE h histogram\n"
              "h_count 1\n"
              "h_sum 1\n"
              "h_bucket{le=\"+Inf\"} 1\n"
              "# TYPE h_count_counter counter\n"
              "h_count_counter 5\n"
              "# TYPE n counter\n"
              "n{_=\"x\"} 6\n"
              "n{_=\"x\",source=\"/n\"} 7\n"
              "n{_=\"x\",source=\"/n{类=\\\"x\\\"}\"} 8\n");
    Exposed();
  });
  EXPECT_EQ(error_output_,
            "persia-metrics: metrics of different types have the exposed name a_b_c; the Collectable exposes those of the "
            "first one's type\n");
}

TEST_F(OwnMetricsTest, IsOneObjectForTheLifeOfTheProcess) {
  Alone([] {
    const std::weak_ptr<prometheus::Collectable> kept_by_an_exposer = AsCollectable();
    EXPECT_EQ(kept_by_an_exposer.lock(), AsCollectable());
    EXPECT_TRUE(AsCollectable()->Collect().empty());
  });
}

TEST_F(OwnMetricsTest, ForkedChildShowsItsOwnFromZero) {
  Alone([this] {
    Counter counter("g", "c");
    Gauge("g", "set_by_the_parent").Set(1);
    counter.Increment(7);
    Alone([&] {
      EXPECT_EQ(Exposed(), "# TYPE g_c counter\ng_c 0\n");
      counter.Increment(2);
      EXPECT_EQ(Exposed(), "# TYPE g_c counter\ng_c 2\n");
    });
    EXPECT_EQ(Exposed(), "# TYPE g_c counter\ng_c 7\n# TYPE g_set_by_the_parent gauge\ng_set_by_the_parent 1\n");
  });
}

}  // namespace
}  // namespace persia::metrics::tests
