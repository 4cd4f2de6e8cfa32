#include "remote/snapshot_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "files/journal.h"
#include "remote/snapshot_writer_fixture.h"

namespace persia::agent {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

class SnapshotWriterTest : public SnapshotWriterFixture {};

TEST_F(SnapshotWriterTest, SamplesHaveTheTimeOfTheirCollection) {
  StartAgent();
  Write({{"a", kGauge, 1}, {"b", kGauge, 2}}, 1000);
  Write({{"a", kGauge, 3}, {"b", kGauge, 2}}, 2000);
  EXPECT_THAT(Requests(), ElementsAre(ElementsAre("a{job=dlrm} 1 @1000", "b{job=dlrm} 2 @1000"),
                                      ElementsAre("a{job=dlrm} 3 @2000", "b{job=dlrm} 2 @2000")));
}

TEST_F(SnapshotWriterTest, ASeriesThatIsNotShownGetsOneStaleMarker) {
  StartAgent();
  Write({{"a", kGauge, 1}, {"b", kGauge, 2}, {"c", kGauge, kAbsentValue}}, 1000);
  Lines();
  Write({{"a", kGauge, 1}, {"c", kGauge, kAbsentValue}}, 2000);
  EXPECT_THAT(Lines(), ElementsAre("a{job=dlrm} 1 @2000", "b{job=dlrm} stale @2000"));
  Write({{"a", kGauge, kAbsentValue}, {"c", kGauge, kAbsentValue}}, 3000);
  EXPECT_THAT(Lines(), ElementsAre("a{job=dlrm} stale @3000"));
  Write({{"a", kGauge, kAbsentValue}, {"c", kGauge, kAbsentValue}}, 4000);
  EXPECT_THAT(Lines(), IsEmpty());
  Write({{"a", kGauge, 5}, {"c", kGauge, kAbsentValue}}, 5000);
  EXPECT_THAT(Lines(), ElementsAre("a{job=dlrm} 5 @5000"));
}

TEST_F(SnapshotWriterTest, SeriesThatEndedWithoutAnAgentGetStaleMarkers) {
  StartAgent();
  Write({{"a", kGauge, 1}, {"b", kGauge, 2}}, 1000);
  Write({{"b", kGauge, 2}, {"c", kGauge, 2}}, 2000);
  Lines();
  StartAgent();
  Write({{"c", kGauge, 4}, {"d", kGauge, 4}}, 3000);
  EXPECT_THAT(Lines(), ElementsAre("c{job=dlrm} 4 @3000", "d{job=dlrm} 4 @3000", "b{job=dlrm} stale @3000"));
  StartAgent();
  Write({{"c", kGauge, 4}, {"d", kGauge, 4}}, 4000);
  EXPECT_THAT(Lines(), SizeIs(2)) << "an end is sent once";
}

TEST_F(SnapshotWriterTest, EndSeriesWritesStaleMarkers) {
  StartAgent();
  Write({{"a", kGauge, 1}}, 1000);
  writer_->EndSeries();
  EXPECT_THAT(Lines(), ElementsAre("a{job=dlrm} 1 @1000", "a{job=dlrm} stale @1001"));
  StartAgent();
  Write({{"b", kGauge, 4}}, 3000);
  EXPECT_THAT(Lines(), ElementsAre("b{job=dlrm} 4 @3000"));
}

TEST_F(SnapshotWriterTest, TimestampsIncreaseWhenTheClockIsSetBack) {
  StartAgent();
  Write({{"a", kGauge, 1}}, 100'000);
  Write({{"a", kGauge, 2}}, 100'000);
  EXPECT_THAT(log_.Warnings(), IsEmpty());
  Write({{"a", kGauge, 3}}, 50'000);
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("the clock is 50 s behind")));
  EXPECT_THAT(Lines(), ElementsAre("a{job=dlrm} 1 @100000", "a{job=dlrm} 2 @100001", "a{job=dlrm} 3 @100002"));
  StartAgent();
  Write({{"a", kGauge, 4}}, 60'000);
  Write({{"a", kGauge, 5}}, 200'000);
  EXPECT_THAT(Lines(), ElementsAre("a{job=dlrm} 4 @100003", "a{job=dlrm} 5 @200000"));
}

// The queue may have kept a time one year ahead, or the largest number.
TEST_F(SnapshotWriterTest, AClockThatWasAheadOnceIsForgotten) {
  constexpr int64_t kYearMs = 365LL * 24 * 3'600'000;
  const int64_t now = Now();
  StartAgent();
  Write({{"a", kGauge, 1}}, now + kYearMs);
  Write({{"a", kGauge, 2}}, now);
  Write({{"a", kGauge, 3}}, now + 1);
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("wrong by more than an hour")));
  int64_t newest = now + 1;
  for (const int64_t ahead : {now + kYearMs, INT64_MAX}) {
    StartAgent();
    ASSERT_TRUE(queue_->Append({.timestamp_ms = ahead}, "").ok());
    StartAgent();
    EXPECT_LE(queue_->last_timestamp_ms().value_or(0), newest);
    Write({{"a", kGauge, 4}}, ++newest);
    EXPECT_EQ(Lines().back(), "a{job=dlrm} 4 @" + std::to_string(newest));
  }
  EXPECT_THAT(log_.Warnings(), SizeIs(1));
}

TEST_F(SnapshotWriterTest, TheQueueMayHoldAnyTimestamp) {
  for (const int64_t last : {INT64_MAX, INT64_MIN}) {
    StartAgent();
    ASSERT_TRUE(queue_->Append({.timestamp_ms = last}, "").ok());
    writer_ = std::make_unique<SnapshotWriter>(options_);
    Write({{"a", kGauge, 2}}, Now());
    EXPECT_EQ(queue_->Next()->record.timestamp_ms, last_->collected_at.time_since_epoch() / std::chrono::milliseconds(1));
    for (const auto& entry : std::filesystem::directory_iterator(temporary_.path())) std::filesystem::remove_all(entry.path());
  }
  EXPECT_THAT(log_.Warnings(), SizeIs(1)) << "of the time ahead";
}

TEST_F(SnapshotWriterTest, RefusedStaleMarkersAreBoundedAndNotSavedAgain) {
  options_.max_waiting_markers = 2;
  int saved = 0;
  StartAgent([&saved](std::string_view step) { saved += step == "renamed" ? 1 : 0; });
  // Fills the backlog that is always allowed.
  for (int64_t at : {996, 997, 998, 999}) Write({{"a", kGauge, 1}, {"b", kGauge, 1}, {"c", kGauge, 1}, {"d", kGauge, 1}}, at);
  free_bytes_ = 0;
  const int before = saved;
  for (int64_t at : {2000, 3000}) Write({{"d", kGauge, 1}}, at);
  EXPECT_EQ(saved, before);
  EXPECT_EQ(writer_->ends_given_up(), 1U);
  Lines();
  free_bytes_ = 1 << 30;
  Write({{"d", kGauge, 1}}, 4000);
  EXPECT_THAT(Lines(), ElementsAre("d{job=dlrm} 1 @4000", "b{job=dlrm} stale @4000", "c{job=dlrm} stale @4000"));
  EXPECT_EQ(saved, before + 3) << "two requests and the series";
}

TEST_F(SnapshotWriterTest, EndSeriesWithoutASnapshotEndsTheFormerAgentsSeries) {
  StartAgent();
  Write({{"a", kGauge, 1}}, 1000);
  Lines();
  StartAgent();
  writer_->EndSeries();
  EXPECT_THAT(Lines(), ElementsAre("a{job=dlrm} stale @1001"));
}

TEST_F(SnapshotWriterTest, AStaleMarkerWithoutALastTimestampHasTheClocksTime) {
  StartAgent();
  Write({{"a", kGauge, 1}}, 1000);
  queue_.reset();
  std::filesystem::remove_all(temporary_ / "queue");
  now_ms_ = [] { return int64_t{5000}; };
  StartAgent();
  writer_->EndSeries();
  EXPECT_THAT(Lines(), ElementsAre("a{job=dlrm} stale @5000"));
}

TEST_F(SnapshotWriterTest, RequestsHaveTheirSize) {
  options_.max_samples = 30;
  StartAgent();
  std::vector<Sample> samples;
  for (int i = 0; i < 1000; ++i) samples.push_back({"m" + std::to_string(1000 + i), kGauge, 1});
  Write(samples, 1000);
  EXPECT_THAT(Requests(), AllOf(SizeIs(34), Each(SizeIs(Le(30U)))));
  samples.resize(500);
  Write(samples, 2000);
  EXPECT_THAT(Requests(), AllOf(SizeIs(17 + 17), Each(SizeIs(Le(30U))))) << "the second half are stale markers";
}

TEST_F(SnapshotWriterTest, ARefusedStaleMarkerIsWrittenLater) {
  StartAgent();
  for (int64_t at : {998, 999, 1000}) Write({{"a", kGauge, 1}, {"b", kGauge, 2}}, at);  // the backlog that is always allowed
  free_bytes_ = 0;
  Write({{"b", kGauge, 2}}, 2000);
  EXPECT_EQ(Lines().back(), "b{job=dlrm} 2 @1000");
  EXPECT_EQ(queue_->stats().dropped_samples.at("disk_full"), 2U);
  free_bytes_ = 1 << 30;
  Write({{"b", kGauge, 2}}, 3000);
  EXPECT_THAT(Lines(), ElementsAre("b{job=dlrm} 2 @3000", "a{job=dlrm} stale @3000"));
}

// A request with one series twice would be refused.
TEST_F(SnapshotWriterTest, SeriesThatRelabellingMakesEqualAreCountedAndLoggedOnce) {
  options_.rules.push_back(RelabelRule::Make({.action = RelabelAction::kLabelDrop, .regex = "feat"}).value());
  StartAgent();
  for (int64_t at : {1000, 2000}) {
    Write({{"a", kGauge, 1, 0, {{"feat", "x"}}}, {"a", kGauge, 2, 0, {{"feat", "y"}}}}, at);
  }
  EXPECT_EQ(writer_->duplicates(), 2U);
  EXPECT_THAT(log_.Warnings(),
              ElementsAre(AllOf(HasSubstr("1 series are not sent"), HasSubstr(": __name__=\"a\", job=\"dlrm\""))));
  EXPECT_THAT(Lines(), ElementsAre("a{job=dlrm} 1 @1000", "a{job=dlrm} 1 @2000"));
}

TEST_F(SnapshotWriterTest, ABrokenFileOfActiveSeriesIsSetAside) {
  StartAgent();
  Write({{"a", kGauge, 1}}, 1000);
  Lines();
  std::ofstream(temporary_ / "series", std::ios::binary)
      << JournalCheckpoint({.magic = {'P', 'R', 'S', 'M', 'R', 'W', 'S', '\n'}}, OnlyRecord("no snappy"));
  StartAgent();
  EXPECT_THAT(log_.Warnings(), ElementsAre(HasSubstr("not a list of series")));
  Write({{"b", kGauge, 1}}, 2000);
  EXPECT_THAT(Lines(), ElementsAre("b{job=dlrm} 1 @2000"));
}

class SnapshotWriterFaultTest : public SnapshotWriterTest, public ::testing::WithParamInterface<const char*> {};

// After a kill at any step, the next agent writes a stale marker for each series that it does not show.
TEST_P(SnapshotWriterFaultTest, AfterAKillEachSeriesGetsItsStaleMarker) {
  for (int time = 1; time <= 12; ++time) {
    for (const auto& entry : std::filesystem::directory_iterator(temporary_.path())) std::filesystem::remove_all(entry.path());
    last_ = nullptr;
    const pid_t pid = fork();
    if (pid == 0) {
      int times = 0;
      StartAgent([&](std::string_view step) {
        if (step == GetParam() && ++times == time) raise(SIGKILL);
      });
      Write({{"a", kGauge, 1}, {"b", kGauge, 1}}, 1000);
      Write({{"b", kGauge, 1}, {"c", kGauge, 1}}, 2000);
      Write({{"d", kGauge, 1}}, 3000);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    StartAgent();
    Write({{"e", kGauge, 1}}, 4000);
    std::map<std::string, std::string> last;
    int64_t before = 0;
    for (const std::string& line : Lines()) {
      const int64_t at = std::stoll(line.substr(line.find('@') + 1));
      EXPECT_GE(at, before);
      before = at;
      last[line.substr(0, line.find('{'))] = line.substr(line.find(' ') + 1, 1);
    }
    for (const auto& [name, value] : last) EXPECT_EQ(value, name == "e" ? "1" : "s") << name << ", killed at " << time;
    if (WIFEXITED(status)) {
      EXPECT_GT(time, 1) << "the step was not reached";
      return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, SnapshotWriterFaultTest,
                         ::testing::Values("draft made", "draft written", "draft on disk", "renamed"), [](const auto& info) {
                           std::string name(info.param);
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace persia::agent
