// Reading one segment, and the values after a later read failed.
#include "segment/segment_reader_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

namespace persia::agent::testing {
namespace {

using segment::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(SegmentReaderTest, ReadsIdentityFamiliesAndSeries) {
  SegmentBuilder segment;
  segment.Identity({"dlrm", "run-1", "trainer", 3, 2, {{"zone", "b"}, {"cloud", "x"}}});
  const uint32_t family = segment.Family(Kind::kCounter, "my_app", "batches", {}, GaugePolicy::kLast, {"Batches.", "batches"});
  segment.Set(segment.Series(family, {{"feat", "user"}, {"side", "left"}}), 7);
  ASSERT_NE(Open(segment), nullptr) << problem_.text;
  EXPECT_EQ(reader_->identity(), (SegmentIdentity{"dlrm", "run-1", "trainer", 3, 2, {{"cloud", "x"}, {"zone", "b"}}}));
  ASSERT_EQ(reader_->families().size(), 1U);
  EXPECT_EQ(reader_->families()[0].group + "/" + reader_->families()[0].name, "my_app/batches");
  EXPECT_EQ(reader_->families()[0].help + reader_->families()[0].unit, "Batches.batches");
  ASSERT_EQ(reader_->series().size(), 1U);
  Labels labels;
  VisitLabels(reader_->records(), series(0).record,
              [&](std::string_view name, std::string_view value) { labels.emplace_back(name, value); });
  EXPECT_EQ(labels, (Labels{{"feat", "user"}, {"side", "left"}}));
  EXPECT_EQ(Whole(0), 7U);
}

TEST_F(SegmentReaderTest, TheNewestIdentityCounts) {
  SegmentBuilder segment;
  segment.Identity({.role = "first"});
  segment.Identity({.role = "second"});
  ASSERT_NE(Open(segment), nullptr);
  EXPECT_EQ(reader_->identity().role, "second");
  segment.Identity({.role = "third"});
  Put("a.seg", segment);
  const uint64_t generation = reader_->generation();
  ASSERT_TRUE(Read());
  EXPECT_EQ(reader_->identity().role, "third");
  EXPECT_GT(reader_->generation(), generation);
}

TEST_F(SegmentReaderTest, ReportsTheWritingLibrary) {
  SegmentBuilder segment;
  segment.Identity({.role = "trainer"});
  ASSERT_NE(Open(segment), nullptr);
  EXPECT_EQ(reader_->writer(), SegmentWriterInfo{}) << "there is no writer record yet";
  segment.Writer({"c++", "0.1.0"});
  segment.Writer({"python", "0.2.0"});
  Put("a.seg", segment);
  ASSERT_TRUE(Read());
  EXPECT_EQ(reader_->writer(), (SegmentWriterInfo{"python", "0.2.0"}));
  EXPECT_EQ(reader_->records_skipped(), 0U);
}

TEST_F(SegmentReaderTest, AClockCountsWhileItRuns) {
  constexpr uint64_t kSecond = 1'000'000'000;
  SegmentBuilder segment;
  const uint32_t clocks = segment.Family(Kind::kClock, "persia_phase", "seconds_total");
  const uint32_t data = segment.Series(clocks, {{"phase", "data"}});
  const uint32_t other = segment.Series(clocks, {{"phase", "other"}});
  segment.Set(data, segment::StartedClock(2 * 3 * kSecond, 10 * kSecond));  // it has run for 3 s
  segment.Set(data + segment::kClockStart, 10 * kSecond);
  segment.Set(other, 2 * 7 * kSecond);
  ASSERT_NE(Open(segment), nullptr) << problem_.text;
  EXPECT_EQ(reader_->families()[0].kind, Kind::kCounter);
  EXPECT_EQ(Whole(0), 0U);
  EXPECT_THAT(Terms(0), ElementsAre(3.0)) << "until it started";
  EXPECT_THAT(Terms(1), ElementsAre(7.0));
  EXPECT_TRUE(reader_->clocks().AnyRuns());
  ASSERT_TRUE(reader_->clocks().Present());
  EXPECT_EQ(reader_->clocks().Present()->name, "data");
  EXPECT_EQ(reader_->clocks().Present()->since_ns, 10 * kSecond);
  EXPECT_EQ(reader_->clocks().Until(), 10 * kSecond);
  EXPECT_EQ(reader_->clocks().LastMark(), 10 * kSecond);

  ASSERT_TRUE(Read(9 * kSecond));
  EXPECT_THAT(Terms(0), ElementsAre(3.0));
  ASSERT_TRUE(Read(12 * kSecond));
  EXPECT_THAT(Terms(0), ElementsAre(5.0));
  EXPECT_THAT(Terms(1), ElementsAre(7.0));
  EXPECT_EQ(reader_->clocks().Until(), 12 * kSecond);
  EXPECT_THAT(reader_->clocks().Times(), ElementsAre(PhaseTime{"data", 5 * kSecond}, PhaseTime{"other", 7 * kSecond}));
  EXPECT_EQ(reader_->changes(), 0U) << "that time passes is no change";
  EXPECT_THAT(reader_->clocks().TimesAt(15 * kSecond),
              ElementsAre(PhaseTime{"data", 8 * kSecond}, PhaseTime{"other", 7 * kSecond}));
  EXPECT_THAT(reader_->clocks().TimesAt(9 * kSecond)[0], (PhaseTime{"data", 3 * kSecond})) << "it started later";

  segment.Set(data, 2 * 6 * kSecond);
  segment.Set(data + segment::kClockStart, 13 * kSecond);  // by the exit
  Put("a.seg", segment);
  ASSERT_TRUE(Read(20 * kSecond));
  EXPECT_THAT(Terms(0), ElementsAre(6.0));
  EXPECT_FALSE(reader_->clocks().AnyRuns());
  EXPECT_FALSE(reader_->clocks().Present());
  EXPECT_EQ(reader_->clocks().Until(), std::nullopt);
  EXPECT_EQ(reader_->clocks().LastMark(), 13 * kSecond);
  EXPECT_EQ(reader_->changes(), 1U);
  ASSERT_TRUE(Read(30 * kSecond));
  EXPECT_EQ(reader_->changes(), 1U);
}

TEST_F(SegmentReaderTest, TheStepIsAWholeNumber) {
  SegmentBuilder segment;
  const uint32_t step = segment.UnsetGauge("persia_phase", "step");
  ASSERT_NE(Open(segment), nullptr);
  EXPECT_EQ(reader_->step(), std::nullopt);
  for (const auto& [value, expected] :
       {std::pair(812.0, std::optional(812.0)), std::pair(-1.0, std::optional<double>()),
        std::pair(std::nan(""), std::optional<double>()), std::pair(1e300, std::optional<double>())}) {
    segment.SetDouble(step, value);
    Put("a.seg", segment);
    ASSERT_TRUE(Read());
    EXPECT_EQ(reader_->step(), expected) << value;
  }
}

TEST_F(SegmentReaderTest, TheFirstStepIsTold) {
  SegmentBuilder segment;
  const uint32_t step = segment.UnsetGauge("persia_phase", "step");
  const uint32_t first = segment.UnsetGauge("persia_phase", "first_step");
  ASSERT_NE(Open(segment), nullptr);
  EXPECT_EQ(reader_->first_step(), std::nullopt);
  segment.SetDouble(step, 12);
  segment.SetDouble(first, 7);
  Put("a.seg", segment);
  ASSERT_TRUE(Read());
  EXPECT_EQ(reader_->step(), 12);
  EXPECT_EQ(reader_->first_step(), 7);
}

TEST_F(SegmentReaderTest, AddsUpTheLanesOfAllThreads) {
  SegmentBuilder segment;
  const uint32_t counter = segment.Counter("a", "c", {}, 1, 0.5);
  segment.Set(counter, 10, 4);
  segment.SetDouble(counter + 1, 0.25, 4);
  segment.Set(counter, 100, 9);
  const double bounds[] = {1, 2};
  const uint64_t buckets[] = {1, 2, 3};
  const uint32_t histogram = segment.Histogram("a", "h", {}, bounds, 4.5, buckets);
  segment.SetDouble(histogram, 0.125, 4);
  segment.Set(histogram + 3, 7, 4);
  ASSERT_NE(Open(segment), nullptr) << problem_.text;
  EXPECT_EQ(Whole(0), 111U);
  EXPECT_THAT(Terms(0), ElementsAre(0.25, 0.5));
  EXPECT_THAT(Terms(1), ElementsAre(0.125, 4.5));
  const uint64_t* cells = values().wholes.data() + series(1).whole + 1;
  EXPECT_THAT(std::vector<uint64_t>(cells, cells + 3), ElementsAre(1, 2, 10));
}

TEST_F(SegmentReaderTest, GaugesAndTimestampsCountInTheCommonLaneOnly) {
  SegmentBuilder segment;
  const uint32_t gauge = segment.Gauge("a", "g", {}, 2.5);
  segment.UnsetGauge("a", "unset");
  const uint32_t event = segment.Event("t", "e", 1234, 5, 0.5, {}, {});
  segment.SetDouble(gauge, 99, 3);
  segment.Set(event, 99, 3);
  segment.Set(event + 1, 10, 3);
  ASSERT_NE(Open(segment), nullptr) << problem_.text;
  EXPECT_EQ(std::bit_cast<double>(Common(0)), 2.5);
  EXPECT_EQ(Common(1), segment::kUnset);
  EXPECT_EQ(Common(2), 1234U);
  EXPECT_EQ(values().wholes[series(2).whole + 1], 15U);
  EXPECT_THAT(Terms(2), ElementsAre(0.5));
}

TEST_F(SegmentReaderTest, TellsWhichSeriesAreRemoved) {
  SegmentBuilder segment;
  const uint32_t family = segment.Family(Kind::kCounter, "a", "c");
  const uint32_t first = segment.Series(family, {{"i", "1"}});
  const uint32_t second = segment.Series(family, {{"i", "2"}});
  segment.SetRemoved(second);  // before the first read
  ASSERT_NE(Open(segment), nullptr) << problem_.text;
  const auto removed = [&] { return std::pair(series(0).record.removed, series(1).record.removed); };
  EXPECT_EQ(removed(), std::pair(false, true));

  uint64_t generation = reader_->generation();
  ASSERT_TRUE(Read());
  EXPECT_EQ(reader_->generation(), generation);
  segment.SetRemoved(first);
  segment.SetRemoved(second, false);
  Put("a.seg", segment);
  ASSERT_TRUE(Read());
  EXPECT_EQ(removed(), std::pair(true, false));
  EXPECT_GT(reader_->generation(), generation);

  generation = reader_->generation();
  segment.SetRemoved(first, false);
  Put("a.seg", segment);
  ASSERT_TRUE(Read());
  EXPECT_EQ(removed(), std::pair(false, false));
  EXPECT_GT(reader_->generation(), generation);
}

TEST_F(SegmentReaderTest, AFileThatIsCutOffBeforeAMarkCannotBeRead) {
  SegmentBuilder segment;
  const uint32_t slot = segment.Counter("a", "c", {}, 1);
  ASSERT_NE(Open(segment), nullptr) << problem_.text;
  segment.SetRemoved(slot);
  Put("a.seg", segment);
  std::filesystem::resize_file(PathOf("a.seg"), 4096);  // the header alone
  EXPECT_FALSE(Read());
  EXPECT_THAT(problem_.text, HasSubstr("truncated"));
  EXPECT_EQ(Whole(0), 1U) << "the last good values stay";
}

TEST_F(SegmentReaderTest, ReadsSeriesAndLanesAddedLater) {
  SegmentBuilder segment;
  const uint32_t first = segment.Counter("a", "first", {}, 1);
  ASSERT_NE(Open(segment), nullptr);
  const uint64_t generation = reader_->generation();
  segment.Set(first, 2, 1);
  Put("a.seg", segment);
  ASSERT_TRUE(Read());
  EXPECT_EQ(reader_->generation(), generation);
  EXPECT_EQ(Whole(0), 3U);
  for (int i = 0; i < 600; ++i) {
    segment.Series(0, {{"i", std::to_string(i)}});  // three ranges
    if (segment.descriptors_used() > SegmentPlaces{}.descriptors_capacity - 100) {
      break;
    }
  }
  const uint32_t last = segment.Counter("b", "last", {}, 5);
  Put("a.seg", segment);
  ASSERT_TRUE(Read()) << problem_.text;
  EXPECT_GT(reader_->generation(), generation);
  EXPECT_GT(last, segment::kCellsPerChunk * 2);
  EXPECT_EQ(Whole(reader_->series().size() - 1), 5U);
  EXPECT_EQ(Whole(0), 3U);
}

TEST_F(SegmentReaderTest, RecordsTheTickOfACommonValuesChange) {
  SegmentBuilder segment;
  const uint32_t slow = segment.Gauge("a", "slow", {}, 1);
  segment.Gauge("a", "still", {}, 1);
  ASSERT_NE(Open(segment), nullptr);
  ASSERT_TRUE(Read());
  segment.SetDouble(slow, 2);
  Put("a.seg", segment);
  ASSERT_TRUE(Read());
  ASSERT_TRUE(Read());
  EXPECT_EQ(reader_->changed_at()[series(0).common], 3U);
  EXPECT_EQ(reader_->changed_at()[series(1).common], 1U);
}

TEST_F(SegmentReaderTest, SkipsAndCountsUnknownRecords) {
  SegmentBuilder segment;
  segment.Record(99, "some record of a later version");
  const uint32_t unknown = segment.Family(static_cast<Kind>(77), "a", "unknown");
  const uint32_t policy = segment.Family(Kind::kGauge, "a", "odd", {}, static_cast<GaugePolicy>(6));
  for (const uint32_t family : {unknown, policy}) {
    segment.Series(family);
  }
  segment.Counter("a", "known", {}, 3);
  ASSERT_NE(Open(segment), nullptr) << problem_.text;
  EXPECT_EQ(reader_->records_skipped(), 5U);
  ASSERT_EQ(reader_->series().size(), 1U);
  EXPECT_EQ(Whole(0), 3U);
}

TEST_F(SegmentReaderTest, ALaterMinorVersionWithALongerHeaderIsRead) {
  SegmentBuilder segment;
  segment.Counter("a", "c", {}, 3);
  segment.header().minor = 9;
  segment.header().header_bytes = 512;
  ASSERT_NE(Open(segment), nullptr) << problem_.text;
  EXPECT_EQ(Whole(0), 3U);
}

TEST_F(SegmentReaderTest, AWriterLivesAsLongAsItsLock) {
  SegmentBuilder segment;
  ASSERT_NE(Open(segment), nullptr);
  EXPECT_FALSE(reader_->WriterLives());
  {
    const WriterLock lock(PathOf("a.seg"));
    EXPECT_TRUE(reader_->WriterLives());
  }
  EXPECT_FALSE(reader_->WriterLives());
  reader_->Release();
  EXPECT_FALSE(reader_->WriterLives());
}

TEST_F(SegmentReaderTest, ATruncatedFileLeavesTheLastGoodValues) {
  SegmentBuilder segment;
  segment.Counter("a", "c", {}, 3);
  ASSERT_NE(Open(segment), nullptr);
  for (const uint64_t left : {SegmentPlaces{}.chunks_offset, uint64_t{4096}, uint64_t{0}}) {
    std::filesystem::resize_file(PathOf("a.seg"), left);
    EXPECT_FALSE(Read());
    EXPECT_EQ(problem_.reason, "corrupt");
    EXPECT_THAT(problem_.text, HasSubstr("truncated"));
    EXPECT_EQ(Whole(0), 3U);
    EXPECT_EQ(reader_->series().size(), 1U);
  }
}

TEST_F(SegmentReaderTest, ABadRecordLaterLeavesTheLastGoodValues) {
  SegmentBuilder segment;
  const uint32_t slot = segment.Counter("a", "c", {}, 3);
  ASSERT_NE(Open(segment), nullptr);
  segment.Set(slot, 4);
  segment.Counter("a", "good", {}, 1);
  segment.Record(3, segment.Plain(segment::SeriesFixed{0, slot, 0, 0}));  // the slot of the first one
  Put("a.seg", segment);
  EXPECT_FALSE(Read());
  EXPECT_THAT(problem_.text, HasSubstr("which another series uses"));
  const SegmentProblem first = problem_;
  EXPECT_FALSE(Read());
  EXPECT_EQ(problem_.reason, first.reason);
  EXPECT_EQ(problem_.text, first.text);
  EXPECT_EQ(reader_->series().size(), 1U);
  EXPECT_EQ(reader_->families().size(), 1U);
  EXPECT_EQ(Whole(0), 3U);
}

}  // namespace
}  // namespace persia::agent::testing
