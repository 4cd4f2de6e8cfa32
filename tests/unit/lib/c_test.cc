// The library as a program in C sees it.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "c_program.h"
#include "persia/metrics/instruments.h"
#include "segment_format.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

class CTest : public WorkerTest {};

TEST_F(CTest, RecordsWithEachInstrument) {
  const SegmentView segment = SegmentOf([] {
    setenv("BENCHMARK_AI", "segment", 1);
    const int wrong = RecordInC();
    EXPECT_EQ(wrong, 0);
  });
  EXPECT_EQ(segment.job, "c_job");
  EXPECT_EQ(segment.role, "trainer");
  EXPECT_EQ(segment.replica, 3);
  const SeriesView& batches = segment.series.at(R"(c_app/batches{feat="user",zone="eu"})");
  EXPECT_EQ(batches.whole, 2U);
  EXPECT_EQ(batches.fraction, 0.5);
  EXPECT_EQ(batches.help, "Batches.");
  EXPECT_EQ(batches.unit, "batches");
  EXPECT_EQ(segment.series.at("c_app/staleness").value, 6.5);
  EXPECT_EQ(segment.series.at("c_app/staleness").gauge_policy, static_cast<int>(GaugeMerge::kMax));
  EXPECT_EQ(segment.series.at("c_app/cost").buckets, (std::vector<uint64_t>{1, 0, 0}));
  EXPECT_EQ(segment.series.at("c_app/cost_sec").value, 0.5);
  EXPECT_EQ(segment.series.at("c_app/sizes").buckets, (std::vector<uint64_t>{0, 1, 0}));
  EXPECT_EQ(segment.series.at("c_app/step").bounds.size(), 16U);
  EXPECT_EQ(segment.series.at("c_app/native").bounds, (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(segment.series.at("c_app/native").buckets, (std::vector<uint64_t>{0, 1, 0, 0}));
  EXPECT_EQ(segment.series.at("c_app/latency").value, 12.5);
  EXPECT_EQ(segment.series.at("benchmarkai/c.latency").value, 4);
  ASSERT_EQ(segment.events.size(), 2U);
  EXPECT_EQ(segment.events[0].type, "c_app");
  EXPECT_EQ(segment.events[0].metadata, "path='/ckpt';reason=null;");
  EXPECT_EQ(segment.events[1].type, "torchelastic");
}

TEST_F(CTest, ReadsBack) {
  const auto outcome = RunWorker([] {
    setenv("BENCHMARK_AI", "segment", 1);
    const int wrong = ReadInC();
    EXPECT_EQ(wrong, 0);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
}

TEST_F(CTest, FollowsFunctions) {
  const auto outcome = RunWorker([] {
    const int wrong = FollowInC();
    EXPECT_EQ(wrong, 0);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
}

TEST_F(CTest, RemovesSeries) {
  const auto outcome = RunWorker([] {
    const int wrong = RemoveInC();
    EXPECT_EQ(wrong, 0);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
}

TEST_F(CTest, AskingAgainWithAnotherDefinitionIsRefusedAndLogged) {
  const auto outcome = RunWorker([] {
    const int wrong = AskAgainInC();
    EXPECT_EQ(wrong, 0);
  });
  EXPECT_EQ(outcome.wait_status, 0) << outcome.error_output;
  EXPECT_EQ(outcome.LinesOfErrorOutput(), 2) << outcome.error_output;
  EXPECT_EQ(OnlySegment().DroppedFor(segment::Drop::kTypeConflict), 3U) << "each request counts, as in C++";
}

}  // namespace
}  // namespace persia::metrics::tests
