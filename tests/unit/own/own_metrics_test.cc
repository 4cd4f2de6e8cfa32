#include "own/own_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class OwnMetricsTest : public ::testing::Test {
 protected:
  // The first value of a series, by name and labels as `name{a="b"}`; NaN if there is no such series.
  double Value(const std::string& wanted) {
    const auto snapshot = own_.Collect();
    for (const FamilyLayout& family : snapshot->layout->families) {
      for (const SeriesLayout& series : family.series) {
        std::string name = family.name;
        for (const auto& [label, value] : series.labels) {
          name.append(name.back() == '"' ? "," : "{").append(label).append("=\"").append(value).append("\"");
        }
        if (!series.labels.empty()) name += "}";
        if (name == wanted) return snapshot->values.at(series.first_value);
      }
    }
    return std::nan("");
  }

  Labels BuildInfo() {
    const auto snapshot = own_.Collect();
    for (const FamilyLayout& family : snapshot->layout->families) {
      if (family.name == "persia_agent_build_info") return family.series.at(0).labels.ToList();
    }
    return {};
  }

#ifdef __clang__
  const std::string kCompiler = "clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__);
#else
  const std::string kCompiler = std::string("gcc ") + __VERSION__;
#endif
  std::chrono::system_clock::time_point now_{std::chrono::milliseconds(1700000000500)};
  OwnMetrics own_{{.identity = {"job", {{"role", "agent"}}}, .version = "1.2.3", .now = [this] { return now_; }}};
};

TEST_F(OwnMetricsTest, EveryFamilyHasItsPrefixAndHelp) {
  own_.AddGateway("gw:9091");
  own_.PushDone("gw:9091", "success", 0.1, 10);
  const auto snapshot = own_.Collect();
  EXPECT_EQ(snapshot->layout->families.size(), 35U);
  EXPECT_THAT(snapshot->layout->families, Each(Field(&FamilyLayout::name, StartsWith("persia_agent_"))));
  EXPECT_THAT(snapshot->layout->families, Each(Field(&FamilyLayout::help, Not(IsEmpty()))));
  EXPECT_EQ(snapshot->layout->identities.front(), (Identity{"job", {{"role", "agent"}}}));
}

TEST_F(OwnMetricsTest, KnownChildrenStartAtZero) {
  own_.AddGateway("gw:9091");
  for (const char* result : {"success", "rejected", "server_error", "unreachable", "interrupted"}) {
    EXPECT_EQ(Value("persia_agent_pushes_total{gateway=\"gw:9091\",result=\"" + std::string(result) + "\"}"), 0);
  }
  EXPECT_EQ(Value("persia_agent_push_bytes_total{gateway=\"gw:9091\"}"), 0);
  EXPECT_EQ(Value("persia_agent_push_consecutive_failures{gateway=\"gw:9091\"}"), 0);
  EXPECT_EQ(Value("persia_agent_segments_refused{reason=\"corrupt\"}"), 0);
  EXPECT_EQ(Value("persia_agent_ticks_skipped_total"), 0);
  EXPECT_TRUE(std::isnan(Value("persia_agent_last_push_success_timestamp_seconds{gateway=\"gw:9091\"}")));
}

TEST_F(OwnMetricsTest, SamplesOfRemoteWriteAreCountedByReason) {
  const char* const reasons[] = {"queue_bytes", "queue_age", "disk_full", "corrupt", "behind", "duplicate", "ends", "not_open"};
  RemoteWriteCounts counts;
  for (const char* reason : reasons) counts.dropped_samples[reason] = 3;
  own_.SetRemoteWrite({{"db", counts}});
  for (const char* reason : reasons) {
    EXPECT_EQ(Value("persia_agent_remote_write_samples_dropped_total{reason=\"" + std::string(reason) + "\",target=\"db\"}"), 3)
        << reason;
  }
}

TEST_F(OwnMetricsTest, GaugesOfARemovedTargetDisappear) {
  RemoteWriteCounts counts;
  counts.samples_sent = 7;
  counts.pending_samples = 5;
  counts.oldest_pending_ms = 1500;
  counts.samples_refused = {{404, 2}};
  own_.SetRemoteWrite({{"a", counts}, {"b", counts}});
  EXPECT_EQ(Value("persia_agent_remote_write_samples_total{target=\"a\"}"), 7);
  EXPECT_EQ(Value("persia_agent_remote_write_pending_samples{target=\"a\"}"), 5);
  EXPECT_EQ(Value("persia_agent_remote_write_oldest_pending_timestamp_seconds{target=\"a\"}"), 1.5);
  EXPECT_EQ(Value("persia_agent_remote_write_samples_failed_total{status=\"404\",target=\"a\"}"), 2);
  EXPECT_EQ(Value("persia_agent_remote_write_samples_failed_total{status=\"422\",target=\"a\"}"), 0) << "before the first";
  own_.SetRemoteWrite({{"b", counts}});
  EXPECT_EQ(Value("persia_agent_remote_write_samples_total{target=\"a\"}"), 7);
  EXPECT_TRUE(std::isnan(Value("persia_agent_remote_write_pending_samples{target=\"a\"}")));
  EXPECT_EQ(Value("persia_agent_remote_write_pending_samples{target=\"b\"}"), 5);
}

TEST_F(OwnMetricsTest, PushesAreCountedByResult) {
  own_.PushDone("gw:9091", "unreachable", 10, 0);
  own_.PushDone("gw:9091", "rejected", 0.5, 100);
  EXPECT_EQ(Value("persia_agent_push_consecutive_failures{gateway=\"gw:9091\"}"), 2);
  own_.PushDone("gw:9091", "success", 0.25, 100);
  EXPECT_EQ(Value("persia_agent_push_consecutive_failures{gateway=\"gw:9091\"}"), 0);
  EXPECT_EQ(Value("persia_agent_pushes_total{gateway=\"gw:9091\",result=\"success\"}"), 1);
  EXPECT_EQ(Value("persia_agent_pushes_total{gateway=\"gw:9091\",result=\"rejected\"}"), 1);
  EXPECT_EQ(Value("persia_agent_pushes_total{gateway=\"gw:9091\",result=\"unreachable\"}"), 1);
  EXPECT_EQ(Value("persia_agent_push_bytes_total{gateway=\"gw:9091\"}"), 200);
  EXPECT_EQ(Value("persia_agent_push_duration_seconds{gateway=\"gw:9091\"}"), 10.75);
  EXPECT_EQ(Value("persia_agent_last_push_success_timestamp_seconds{gateway=\"gw:9091\"}"), 1700000000.5);
}

TEST_F(OwnMetricsTest, OtherGaugesAndCountersHaveTheReportedValues) {
  own_.CollectDone(0.25);
  own_.RenderDone(0.5);
  own_.SetSeries(1234, 200'000);
  own_.SetLogLines("warning", 3);
  own_.SetSegments("live", 5);
  own_.SetSegmentsRefused("version", 2);
  own_.SegmentRecordsSkipped(3);
  own_.SegmentRecordsSkipped(4);
  own_.TickSkipped();
  own_.TickSkipped(2);
  own_.ScrapeDone();
  own_.ScrapeDone();
  own_.SetSegmentsBroken(4);
  EXPECT_EQ(Value("persia_agent_collect_duration_seconds"), 0.25);
  EXPECT_EQ(Value("persia_agent_render_duration_seconds"), 0.5);
  EXPECT_EQ(Value("persia_agent_series"), 1234);
  EXPECT_EQ(Value("persia_agent_max_series"), 200'000);
  EXPECT_EQ(Value("persia_agent_log_lines_total{level=\"warning\"}"), 3);
  EXPECT_GT(Value("persia_agent_resident_memory_bytes"), 1 << 20);
  EXPECT_GE(Value("persia_agent_cpu_seconds_total"), 0);
  EXPECT_EQ(Value("persia_agent_segments{state=\"live\"}"), 5);
  EXPECT_EQ(Value("persia_agent_segments_refused{reason=\"version\"}"), 2);
  EXPECT_EQ(Value("persia_agent_segment_records_skipped_total"), 7);
  EXPECT_EQ(Value("persia_agent_ticks_skipped_total"), 3);
  EXPECT_EQ(Value("persia_agent_scrapes_total"), 2);
  EXPECT_EQ(Value("persia_agent_segments_broken"), 4);
  EXPECT_EQ(BuildInfo(), (Labels{{"compiler", kCompiler}, {"segment_version", "1.0"}, {"version", "1.2.3"}}));
}

TEST_F(OwnMetricsTest, QuarantinedSeriesGoBackToZero) {
  EXPECT_EQ(Value("persia_agent_dropped_series{reason=\"max_series\"}"), 0) << "a series that appears later costs a new plan";
  own_.SetDroppedSeries("max_series", 7);
  own_.SetQuarantinedSeries("definition", 2);
  EXPECT_EQ(Value("persia_agent_dropped_series{reason=\"max_series\"}"), 7);
  EXPECT_EQ(Value("persia_agent_quarantined_series{reason=\"definition\"}"), 2);
  own_.SetDroppedSeries("max_series", 0);
  own_.SetQuarantinedSeries("definition", 0);
  EXPECT_EQ(Value("persia_agent_dropped_series{reason=\"max_series\"}"), 0);
  EXPECT_EQ(Value("persia_agent_quarantined_series{reason=\"definition\"}"), 0);
}

TEST_F(OwnMetricsTest, TotalsCountedElsewhereNeverDecrease) {
  for (const auto& [told, shown] : {std::pair(3, 3), std::pair(3, 3), std::pair(9, 9), std::pair(4, 9)}) {
    own_.SetRetiredProcesses(told);
    own_.SetLogLinesSuppressed(told);
    own_.SetEventsLost(told);
    own_.SetFifoLines(told, told);
    EXPECT_EQ(Value("persia_agent_retired_processes_total"), shown);
    EXPECT_EQ(Value("persia_agent_log_lines_suppressed_total"), shown);
    EXPECT_EQ(Value("persia_agent_event_records_lost_total"), shown);
    EXPECT_EQ(Value("persia_agent_fifo_lines_total{result=\"good\"}"), shown);
    EXPECT_EQ(Value("persia_agent_fifo_lines_total{result=\"bad\"}"), shown);
  }
}

TEST_F(OwnMetricsTest, AcceptsUpdatesDuringACollection) {
  std::thread reporter([&] {
    for (int i = 0; i < 1000; ++i) own_.PushDone("gw:" + std::to_string(i % 10), "success", 0.1, 1);
  });
  for (int i = 0; i < 100; ++i) own_.Collect();
  reporter.join();
  EXPECT_EQ(Value("persia_agent_pushes_total{gateway=\"gw:3\",result=\"success\"}"), 100);
}

}  // namespace
}  // namespace persia::agent
