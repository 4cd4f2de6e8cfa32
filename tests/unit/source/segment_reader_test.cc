// One segment: what is read, what is refused, and what a later bad read leaves.
#include "source/segment_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>

#include "job_directory_test.h"

namespace persia::agent::testing {
namespace {

using segment::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SegmentReaderTest : public JobDirectoryTest {
 protected:
  // Opens and reads the file of that name; null: see problem().
  SegmentReader* Open(const std::string& name = "a.seg") {
    const int directory_fd = open(directory().c_str(), O_RDONLY | O_DIRECTORY);
    reader_ = SegmentReader::Open(directory_fd, name.c_str(), access_, problem_);
    close(directory_fd);
    if (reader_ != nullptr && !Read()) {
      reader_.reset();
    }
    return reader_.get();
  }
  SegmentReader* Open(const SegmentBuilder& segment) {
    Remove("a.seg");
    Put("a.seg", segment);
    return Open();
  }
  bool Read() { return reader_->Read(++tick_, problem_); }

  [[nodiscard]] const SegmentValues& values() const { return reader_->values(); }
  [[nodiscard]] const SegmentSeries& series(size_t i) const { return reader_->series()[i]; }
  [[nodiscard]] uint64_t Whole(size_t i) const { return values().wholes[series(i).whole]; }
  [[nodiscard]] std::vector<double> Terms(size_t i) const {
    std::vector<double> terms;
    values().AppendTerms(series(i).real, terms);
    std::sort(terms.begin(), terms.end());
    return terms;
  }
  [[nodiscard]] uint64_t Common(size_t i) const { return values().commons[series(i).common]; }

  SegmentAccess access_{geteuid(), std::nullopt, 1 << 30};
  SegmentProblem problem_;
  std::unique_ptr<SegmentReader> reader_;
  uint64_t tick_ = 0;
};

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
  reader_->VisitLabels(series(0), [&](auto name, auto value) { labels.emplace_back(name, value); });
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

TEST_F(SegmentReaderTest, SeesSeriesAndLanesThatComeLater) {
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

TEST_F(SegmentReaderTest, NotesWhenACommonValueChanged) {
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

TEST_F(SegmentReaderTest, SkipsAndCountsWhatItDoesNotKnow) {
  SegmentBuilder segment;
  segment.Record(99, "some record of a later version");
  const uint32_t stream = segment.Family(Kind::kStream, "a", "stream");
  const uint32_t unknown = segment.Family(static_cast<Kind>(77), "a", "unknown");
  const uint32_t policy = segment.Family(Kind::kGauge, "a", "odd", {}, static_cast<GaugePolicy>(6));
  for (const uint32_t family : {stream, unknown, policy}) {
    segment.Series(family);
  }
  segment.Counter("a", "known", {}, 3);
  ASSERT_NE(Open(segment), nullptr) << problem_.text;
  EXPECT_EQ(reader_->records_skipped(), 7U);
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

TEST_F(SegmentReaderTest, KeepsTheMapOfAFileThatIsUnlinked) {
  SegmentBuilder segment;
  const uint32_t slot = segment.Counter("a", "c", {}, 3);
  Put("a.seg", segment);
  std::filesystem::create_hard_link(PathOf("a.seg"), PathOf("still_written"));
  ASSERT_NE(Open(), nullptr);
  Remove("a.seg");
  segment.Set(slot, 4);
  Put("still_written", segment);
  ASSERT_TRUE(Read());
  EXPECT_EQ(Whole(0), 4U);
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
  segment.Record(3, segment.Plain(segment::SeriesFixed{0, slot, 0, 0}));  // where the first one lies
  Put("a.seg", segment);
  EXPECT_FALSE(Read());
  EXPECT_THAT(problem_.text, HasSubstr("where another series lies"));
  const SegmentProblem first = problem_;
  EXPECT_FALSE(Read());
  EXPECT_EQ(problem_, first);
  EXPECT_EQ(reader_->series().size(), 1U);
  EXPECT_EQ(reader_->families().size(), 1U);
  EXPECT_EQ(Whole(0), 3U);
}

// One line a field: how it is broken, and what is said of it.
struct Broken {
  const char* what;
  std::function<void(SegmentBuilder&)> how;
  const char* reason;
  const char* text;
};

TEST_F(SegmentReaderTest, ABrokenSegmentIsRefusedWithItsReason) {
  constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();
  const auto record = [](uint16_t type, std::string body) { return [=](SegmentBuilder& s) { s.Record(type, body); }; };
  const auto u32 = [](uint32_t n) { return SegmentBuilder::Plain(n); };
  const auto family_body = [&](uint8_t kind, std::vector<double> bounds) {
    std::string body = SegmentBuilder::Plain(segment::FamilyFixed{kind, 0, 0, static_cast<uint32_t>(bounds.size())});
    for (const double bound : bounds) {
      body += SegmentBuilder::Plain(bound);
    }
    return body + u32(0) + u32(0) + u32(0) + u32(0);
  };
  const auto series_body = [](uint32_t family, uint32_t slot, uint32_t labels) {
    return SegmentBuilder::Plain(segment::SeriesFixed{family, slot, labels, 0});
  };
  const auto raw_length = [](uint32_t bytes) {
    return [=](SegmentBuilder& s) {
      const uint64_t at = SegmentPlaces{}.descriptors_offset + s.descriptors_used();
      s.Record(99, "body");
      std::memcpy(s.image().data() + at, &bytes, sizeof bytes);
    };
  };
  const auto entry = [](uint32_t lane, uint32_t range) {
    return [=](SegmentBuilder& s) {
      const segment::ChunkEntry bad{lane, range};
      std::memcpy(s.image().data() + SegmentPlaces{}.directory_offset, &bad, sizeof bad);
    };
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Broken cases[] = {
      {"magic", [](auto& s) { s.header().magic[3] = 'X'; }, "magic", R"(starts with "PRSXSEG\x0a")"},
      {"newer major", [](auto& s) { s.header().major = 2; }, "version", "it has version 2.0, this agent reads version 1"},
      {"no major", [](auto& s) { s.header().major = 0; }, "version", "it has version 0.0"},
      {"header too small", [](auto& s) { s.header().header_bytes = 279; }, "corrupt", "279 bytes"},
      {"header too large", [](auto& s) { s.header().header_bytes = 4097; }, "corrupt", "4097 bytes"},
      {"limit too large", [](auto& s) { s.header().max_bytes = (1ULL << 30) + 1; }, "size", "1073741825"},
      {"limit too small", [](auto& s) { s.header().max_bytes = 4095; }, "corrupt", "allows 4095 bytes"},
      {"limit below size", [](auto& s) { s.header().max_bytes = s.image().size() - 1; }, "corrupt", "the file has"},
      {"descriptors beyond", [](auto& s) { s.header().descriptors_offset = 1 << 20; }, "corrupt", "the descriptors at byte"},
      {"descriptors wrap", [](auto& s) { s.header().descriptors_capacity = kHuge - 4095; }, "corrupt",
       "the descriptors at byte"},
      {"descriptors unaligned", [](auto& s) { s.header().descriptors_offset = 4097; }, "corrupt",
       "the descriptors at byte 4097"},
      {"descriptors in header", [](auto& s) { s.header().descriptors_offset = 272; }, "corrupt", "descriptors into header"},
      {"directory beyond", [](auto& s) { s.header().directory_capacity = 1 << 18; }, "corrupt", "the directory at byte"},
      {"directory wraps", [](auto& s) { s.header().directory_capacity = kHuge / 8 + 2; }, "corrupt", "the directory at byte"},
      {"directory in descriptors", [](auto& s) { s.header().directory_offset = 8192; }, "corrupt",
       "directory into descriptors"},
      {"ring wraps", [](auto& s) { s.header().ring_slots = kHuge / 1024 + 1; }, "corrupt", "the event ring at byte"},
      {"chunks beyond", [](auto& s) { s.header().chunks_offset = kHuge - 7; }, "corrupt", "the chunks at byte"},
      {"chunks in header", [](auto& s) { s.header().chunks_offset = 0; }, "corrupt", "places"},
      {"used beyond", [](auto& s) { s.header().descriptors_used = 16392; }, "corrupt", "counts 16392 bytes of descriptors"},
      {"used unaligned", [](auto& s) { s.header().descriptors_used = 12; }, "corrupt", "counts 12 bytes of descriptors"},
      {"used huge", [](auto& s) { s.header().descriptors_used = kHuge - 7; }, "corrupt", "bytes of descriptors"},
      {"chunks used beyond", [](auto& s) { s.header().chunks_used = 65; }, "corrupt", "counts 65 chunks"},
      {"chunks used huge", [](auto& s) { s.header().chunks_used = kHuge; }, "corrupt", "chunks"},
      {"chunks not there", [](auto& s) { s.header().chunks_used = 3; }, "corrupt", "range 0"},
      {"entry of range 0", entry(0, 0), "corrupt", "names a range that no segment has"},
      {"entry twice", entry(5, 1), "corrupt", "stands there twice"},
      {"no common chunk", entry(6, 1), "corrupt", "no chunk in the common lane"},
      {"record of no bytes", raw_length(0), "corrupt", "impossible length"},
      {"record unaligned", raw_length(12), "corrupt", "impossible length"},
      {"record too long", raw_length(1 << 14), "corrupt", "impossible length"},
      {"record huge", raw_length(0xffff'fff8), "corrupt", "impossible length"},
      {"identity cut", record(1, u32(0)), "corrupt", "identity record is shorter"},
      {"identity string cut", record(1, std::string(16, '\0') + u32(1000)), "corrupt", "identity record is shorter"},
      {"identity of many labels", record(1, u32(0) + u32(0) + u32(0xffff'ffff) + u32(0) + u32(0) + u32(0) + u32(0)), "corrupt",
       "identity record is shorter"},
      {"family cut", record(2, ""), "corrupt", "family record is shorter"},
      {"family string cut", record(2, SegmentBuilder::Plain(segment::FamilyFixed{1, 0, 0, 0}) + u32(0xffff'ffff)), "corrupt",
       "family record is shorter"},
      {"too many bounds", record(2, SegmentBuilder::Plain(segment::FamilyFixed{3, 0, 0, 501})), "corrupt", "more bounds"},
      {"a counter with bounds", record(2, family_body(1, {1})), "corrupt", "more bounds"},
      {"bounds cut", record(2, SegmentBuilder::Plain(segment::FamilyFixed{3, 0, 0, 9})), "corrupt", "family record is shorter"},
      {"bounds descend", record(2, family_body(3, {2, 1})), "corrupt", "not finite and ascending"},
      {"a bound twice", record(2, family_body(3, {1, 1})), "corrupt", "not finite and ascending"},
      {"a bound that is NaN", record(2, family_body(3, {nan})), "corrupt", "not finite and ascending"},
      {"series cut", record(3, u32(0)), "corrupt", "series record"},
      {"series of no family", record(3, series_body(1, 600, 0)), "corrupt", "family that is not there"},
      {"series of many labels", record(3, series_body(0, 600, 0xffff'ffff)), "corrupt", "series record is shorter"},
      {"series label cut", record(3, series_body(0, 600, 1) + u32(1) + "a" + u32(99)), "corrupt", "series record"},
      {"labels unsorted", record(3, series_body(0, 600, 2) + u32(1) + "b" + u32(0) + u32(1) + "a" + u32(0)), "corrupt",
       "sorted"},
      {"a label twice", record(3, series_body(0, 600, 2) + u32(1) + "a" + u32(0) + u32(1) + "a" + u32(0)), "corrupt", "sorted"},
      {"slot of range 0", record(3, series_body(0, 511, 0)), "corrupt", "slot that no series can have"},
      {"slot across chunks", record(3, series_body(0, 1023, 0)), "corrupt", "slot that no series can have"},
      {"slot without chunk", record(3, series_body(0, 5120, 0)), "corrupt", "no chunk in the common lane"},
      {"slot taken", record(3, series_body(0, 513, 0)), "corrupt", "where another series lies"},
  };
  for (const Broken& broken : cases) {
    SegmentBuilder segment;
    const uint32_t slot = segment.Counter("a", "c", {}, 1);
    segment.Set(slot, 1, 5);
    ASSERT_NE(Open(segment), nullptr) << problem_.text;
    broken.how(segment);
    problem_ = {};
    EXPECT_EQ(Open(segment), nullptr) << broken.what;
    EXPECT_EQ(problem_.reason, broken.reason) << broken.what << ": " << problem_.text;
    EXPECT_THAT(problem_.text, HasSubstr(broken.text)) << broken.what;
  }
}

TEST_F(SegmentReaderTest, CountsThatFallAreRefused) {
  for (const bool descriptors : {true, false}) {
    SegmentBuilder segment;
    segment.Counter("a", "c", {}, 1);
    ASSERT_NE(Open(segment), nullptr);
    (descriptors ? segment.header().descriptors_used : segment.header().chunks_used) = 0;
    Put("a.seg", segment);
    EXPECT_FALSE(Read());
    EXPECT_THAT(problem_.text, HasSubstr("were there before"));
    EXPECT_EQ(Whole(0), 1U);
  }
}

TEST_F(SegmentReaderTest, AHeaderThatChangesIsRefused) {
  SegmentBuilder segment;
  segment.Counter("a", "c", {}, 1);
  ASSERT_NE(Open(segment), nullptr);
  segment.header().chunks_offset += 8;
  Put("a.seg", segment);
  EXPECT_FALSE(Read());
  EXPECT_THAT(problem_.text, HasSubstr("header is not what it was"));
}

TEST_F(SegmentReaderTest, EveryShorterFileIsRefusedOrRead) {
  SegmentBuilder segment;
  segment.Counter("a", "c", {}, 1);
  const std::string whole = segment.image();
  size_t read = 0;
  for (size_t bytes = 0; bytes <= whole.size(); bytes += bytes < 300 ? 1 : 509) {
    PutText("a.seg", whole.substr(0, bytes));
    read += Open() != nullptr ? 1 : 0;
    if (reader_ == nullptr) {
      ASSERT_EQ(problem_.reason, "corrupt") << bytes;
    }
  }
  EXPECT_LT(read, 12U);  // only where the last page is there at least in part
}

TEST_F(SegmentReaderTest, WhatIsNoSegmentOfOursIsRefused) {
  SegmentBuilder segment;
  Put("real.seg", segment);
  std::filesystem::create_symlink("real.seg", PathOf("link.seg"));
  std::filesystem::create_directory(PathOf("directory.seg"));
  ASSERT_EQ(mkfifo(PathOf("pipe.seg").c_str(), 0600), 0);
  PutText("empty.seg", "");
  const auto reason = [&](const std::string& name) {
    EXPECT_EQ(Open(name), nullptr) << name;
    return problem_.reason;
  };
  EXPECT_EQ(reason("link.seg"), "type");
  EXPECT_EQ(reason("directory.seg"), "type");
  EXPECT_EQ(reason("pipe.seg"), "type");
  EXPECT_EQ(reason("missing.seg"), "access");
  EXPECT_EQ(reason("empty.seg"), "corrupt");
  access_.owner = geteuid() + 1;
  EXPECT_EQ(reason("real.seg"), "owner");
  access_.group = getegid() + 1;
  EXPECT_EQ(reason("real.seg"), "owner");
  access_.group = getegid();
  EXPECT_NE(Open("real.seg"), nullptr) << problem_.text;
}

}  // namespace
}  // namespace persia::agent::testing
