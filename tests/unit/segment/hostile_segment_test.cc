// Malformed segments, one field at a time, and files that are not segments: the reported problem.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/owned_fd.h"
#include "kernel/proc_reader.h"
#include "segment/segment_reader_test.h"
#include "temporary_directory.h"

namespace persia::agent::testing {
namespace {

using ::testing::HasSubstr;

using HostileSegmentTest = SegmentReaderTest;

// One line per field: the change that breaks it, and the reported problem.
struct Broken {
  const char* what;
  std::function<void(SegmentBuilder&)> how;
  const char* reason;
  const char* text;
};

TEST_F(HostileSegmentTest, ABrokenSegmentIsRefusedWithItsReason) {
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
      {"magic", [](auto& s) { s.header().magic[3] = 'X'; }, "magic", R"(starts with "PRSXSEG\n")"},
      {"newer major", [](auto& s) { s.header().major = 2; }, "version", "it has version 2.0, this agent reads version 1"},
      {"no major", [](auto& s) { s.header().major = 0; }, "version", "it has version 0.0"},
      {"header too small", [](auto& s) { s.header().header_bytes = 295; }, "corrupt", "295 bytes"},
      {"header too large", [](auto& s) { s.header().header_bytes = 4097; }, "corrupt", "4097 bytes"},
      {"limit too large", [](auto& s) { s.header().max_bytes = (1ULL << 30) + 1; }, "size", "1073741825"},
      {"limit too small", [](auto& s) { s.header().max_bytes = 4095; }, "corrupt", "allows 4095 bytes"},
      {"limit below size", [](auto& s) { s.header().max_bytes = s.image().size() - 1; }, "corrupt", "the file has"},
      {"descriptors beyond", [](auto& s) { s.header().descriptors_offset = 1 << 20; }, "corrupt", "the descriptors at byte"},
      {"descriptors wrap", [](auto& s) { s.header().descriptors_capacity = kHuge - 4095; }, "corrupt",
       "the descriptors at byte"},
      {"descriptors unaligned", [](auto& s) { s.header().descriptors_offset = 4097; }, "corrupt",
       "the descriptors at byte 4097"},
      {"descriptors in header", [](auto& s) { s.header().descriptors_offset = 272; }, "corrupt", "descriptors inside header"},
      {"directory beyond", [](auto& s) { s.header().directory_capacity = 1 << 18; }, "corrupt", "the directory at byte"},
      {"directory wraps", [](auto& s) { s.header().directory_capacity = kHuge / 8 + 2; }, "corrupt", "the directory at byte"},
      {"directory in descriptors", [](auto& s) { s.header().directory_offset = 8192; }, "corrupt",
       "directory inside descriptors"},
      {"ring wraps", [](auto& s) { s.header().ring_slots = kHuge / 1024 + 1; }, "corrupt", "the event ring at byte"},
      {"chunks beyond", [](auto& s) { s.header().chunks_offset = kHuge - 7; }, "corrupt", "the chunks at byte"},
      {"chunks in header", [](auto& s) { s.header().chunks_offset = 0; }, "corrupt", "places"},
      {"used beyond", [](auto& s) { s.header().descriptors_used = 16392; }, "corrupt", "counts 16392 bytes of descriptors"},
      {"used unaligned", [](auto& s) { s.header().descriptors_used = 12; }, "corrupt", "counts 12 bytes of descriptors"},
      {"used huge", [](auto& s) { s.header().descriptors_used = kHuge - 7; }, "corrupt", "bytes of descriptors"},
      {"chunks used beyond", [](auto& s) { s.header().chunks_used = 65; }, "corrupt", "counts 65 chunks"},
      {"chunks used huge", [](auto& s) { s.header().chunks_used = kHuge; }, "corrupt", "chunks"},
      {"chunks not there", [](auto& s) { s.header().chunks_used = 3; }, "corrupt", "range 0"},
      {"entry of range 0", entry(0, 0), "corrupt", "range 0 is reserved"},
      {"entry twice", entry(5, 1), "corrupt", "occurs twice"},
      {"no common chunk", entry(6, 1), "corrupt", "no chunk in the common lane"},
      {"record of no bytes", raw_length(0), "corrupt", "invalid length"},
      {"record unaligned", raw_length(12), "corrupt", "invalid length"},
      {"record too long", raw_length(1 << 14), "corrupt", "invalid length"},
      {"record huge", raw_length(0xffff'fff8), "corrupt", "invalid length"},
      {"identity cut", record(1, u32(0)), "corrupt", "identity record is shorter"},
      {"identity string cut", record(1, std::string(16, '\0') + u32(1000)), "corrupt", "identity record is shorter"},
      {"identity of many labels", record(1, u32(0) + u32(0) + u32(0xffff'ffff) + u32(0) + u32(0) + u32(0) + u32(0)), "corrupt",
       "identity record is shorter"},
      {"writer cut", record(4, u32(3) + "c++"), "corrupt", "writer record is shorter"},
      {"writer string cut", record(4, u32(3) + "c++" + u32(0xffff'ffff)), "corrupt", "writer record is shorter"},
      {"family cut", record(2, ""), "corrupt", "family record is shorter"},
      {"family string cut", record(2, SegmentBuilder::Plain(segment::FamilyFixed{1, 0, 0, 0}) + u32(0xffff'ffff)), "corrupt",
       "family record is shorter"},
      {"too many bounds", record(2, SegmentBuilder::Plain(segment::FamilyFixed{3, 0, 0, 501})), "corrupt", "more bounds"},
      {"a counter with bounds", record(2, family_body(1, {1})), "corrupt", "more bounds"},
      {"bounds cut", record(2, SegmentBuilder::Plain(segment::FamilyFixed{3, 0, 0, 9})), "corrupt", "family record is shorter"},
      {"native bounds of no schema", record(2, family_body(6, {1, 2, 3})), "corrupt", "not those of a schema"},
      {"native bounds too far apart", record(2, family_body(6, {1, 0x1p32})), "corrupt", "not those of a schema"},
      {"native bounds too close", record(2, family_body(6, {1, 1.0001})), "corrupt", "not those of a schema"},
      {"a native bound that is negative", record(2, family_body(6, {-1, 1})), "corrupt", "not those of a schema"},
      {"one native bound", record(2, family_body(6, {1})), "corrupt", "not those of a schema"},
      {"bounds descend", record(2, family_body(3, {2, 1})), "corrupt", "not finite and ascending"},
      {"a bound twice", record(2, family_body(3, {1, 1})), "corrupt", "not finite and ascending"},
      {"a bound that is NaN", record(2, family_body(3, {nan})), "corrupt", "not finite and ascending"},
      {"series cut", record(3, u32(0)), "corrupt", "series record"},
      {"series of no family", record(3, series_body(1, 600, 0)), "corrupt", "family that does not exist"},
      {"series of many labels", record(3, series_body(0, 600, 0xffff'ffff)), "corrupt", "series record is shorter"},
      {"series label cut", record(3, series_body(0, 600, 1) + u32(1) + "a" + u32(99)), "corrupt", "series record"},
      {"labels unsorted", record(3, series_body(0, 600, 2) + u32(1) + "b" + u32(0) + u32(1) + "a" + u32(0)), "corrupt",
       "sorted"},
      {"a label twice", record(3, series_body(0, 600, 2) + u32(1) + "a" + u32(0) + u32(1) + "a" + u32(0)), "corrupt", "sorted"},
      {"slot of range 0", record(3, series_body(0, 511, 0)), "corrupt", "an invalid slot"},
      {"slot across chunks", record(3, series_body(0, 1023, 0)), "corrupt", "an invalid slot"},
      {"slot without chunk", record(3, series_body(0, 5120, 0)), "corrupt", "no chunk in the common lane"},
      {"slot taken", record(3, series_body(0, 513, 0)), "corrupt", "which another series uses"},
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

Labels NumberedLabels(int count) {
  Labels labels;
  for (int i = 0; i < count; ++i) {
    labels.emplace_back("l" + std::to_string(100 + i), "v");
  }
  return labels;
}

TEST_F(HostileSegmentTest, ARecordBeyondALimitIsLeftOutAlone) {
  SegmentBuilder segment;
  const std::string long_name(257, 'n');
  segment.Counter("a", "before", NumberedLabels(32), 1);
  segment.Counter("a", "labels", NumberedLabels(33), 2);
  segment.Counter("a", "label_name", {{long_name, "v"}}, 3);
  segment.Counter("a", "label_value", {{"l", std::string(4097, 'v')}}, 4);
  segment.Counter("a", long_name, {}, 5);
  segment.Counter(long_name, "group", {}, 6);
  segment.Family(segment::Kind::kCounter, "a", "help", {}, GaugePolicy::kLast, {.help = std::string(4097, 'h')});
  segment.Family(segment::Kind::kCounter, "a", "unit", {}, GaugePolicy::kLast, {.unit = long_name});
  segment.Counter("a", "after", {}, 7);
  ASSERT_NE(Open(segment), nullptr) << problem_.text;
  ASSERT_EQ(reader_->series().size(), 2U);
  EXPECT_EQ(Whole(0), 1U);
  EXPECT_EQ(Whole(1), 7U);
  EXPECT_EQ(reader_->families()[series(1).record.family].name, "after");
  EXPECT_EQ(reader_->records_skipped(), 9U) << "three series, four families and the two series of these";
}

TEST_F(HostileSegmentTest, AnIdentityKeepsTheLabelsThatFit) {
  SegmentBuilder segment;
  segment.Identity({.role = "trainer", .replica = 3, .labels = NumberedLabels(1000)});
  ASSERT_NE(Open(segment), nullptr) << problem_.text;
  EXPECT_EQ(reader_->identity().replica, 3);
  EXPECT_EQ(reader_->identity().labels, NumberedLabels(32));
  EXPECT_EQ(reader_->records_skipped(), 1U);

  Labels large = {{"a", std::string(1000, 'v')}, {"b", std::string(1100, 'v')}, {"c", "v"}};
  SegmentBuilder few;
  few.Identity({.role = "trainer", .labels = large});
  ASSERT_NE(Open(few), nullptr) << problem_.text;
  EXPECT_EQ(reader_->identity().labels, (Labels{large[0], large[2]})) << "each is exposed on every series of the process";
  few.Identity({.role = std::string(257, 'r')});
  ASSERT_NE(Open(few), nullptr) << problem_.text;
  EXPECT_EQ(reader_->identity().role, "trainer") << "the one before";
}

TEST_F(HostileSegmentTest, FamiliesAndSeriesBeyondTheirLimitsAreLeftOut) {
  SegmentBuilder segment({.max_bytes = 1 << 24,
                          .descriptors_capacity = 1 << 22,
                          .directory_offset = 4096 + (1 << 22),
                          .directory_capacity = 64,
                          .chunks_offset = 8192 + (1 << 22)});
  for (uint32_t i = 0; i <= segment::kMaxFamilies; ++i) {
    segment.Family(segment::Kind::kGauge, "", std::to_string(i));
  }
  segment.SetDouble(segment.Series(segment::kMaxFamilies - 1), 1);
  segment.SetDouble(segment.Series(segment::kMaxFamilies), 2);
  segment.SetDouble(segment.Series(0), 3);
  ASSERT_NE(Open(segment), nullptr) << problem_.text;
  EXPECT_EQ(reader_->families().size(), segment::kMaxFamilies);
  ASSERT_EQ(reader_->series().size(), 2U);
  EXPECT_EQ(series(1).record.family, 0U);
  EXPECT_EQ(reader_->records_skipped(), 2U);
}

TEST_F(HostileSegmentTest, CountsThatFallAreRefused) {
  for (const bool descriptors : {true, false}) {
    SegmentBuilder segment;
    segment.Counter("a", "c", {}, 1);
    ASSERT_NE(Open(segment), nullptr);
    (descriptors ? segment.header().descriptors_used : segment.header().chunks_used) = 0;
    Put("a.seg", segment);
    EXPECT_FALSE(Read());
    EXPECT_THAT(problem_.text, HasSubstr("were read before"));
    EXPECT_EQ(Whole(0), 1U);
  }
}

TEST_F(HostileSegmentTest, AHeaderThatChangesIsRefused) {
  SegmentBuilder segment;
  segment.Counter("a", "c", {}, 1);
  ASSERT_NE(Open(segment), nullptr);
  segment.header().chunks_offset += 8;
  Put("a.seg", segment);
  EXPECT_FALSE(Read());
  EXPECT_THAT(problem_.text, HasSubstr("its header changed"));
}

TEST_F(HostileSegmentTest, EveryShorterFileIsRefusedOrRead) {
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
  EXPECT_LT(read, 12U);  // only if the file has at least a part of the last page
}

TEST_F(HostileSegmentTest, OtherFilesAreRefused) {
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
  // Root's files are anybody's.
  if (geteuid() == 0) {
    ASSERT_EQ(chown(PathOf("real.seg").c_str(), 4711, getegid()), 0);
  }
  EXPECT_EQ(reason("real.seg"), "owner");
  access_.group = getegid() + 1;
  EXPECT_EQ(reason("real.seg"), "owner");
  access_.group = getegid();
  EXPECT_NE(Open("real.seg"), nullptr) << problem_.text;
}

// In memory, where a read of a hole would take space for it.
TEST_F(HostileSegmentTest, WhatIsNotThereCostsNothing) {
  const TemporaryDirectory in_memory("/dev/shm");
  static constexpr uint64_t kDescriptors = 1 << 26;
  static constexpr SegmentPlaces kPlaces{.max_bytes = kDescriptors * 4,
                                         .descriptors_capacity = kDescriptors,
                                         .directory_offset = 4096 + kDescriptors,
                                         .directory_capacity = 1000,
                                         .chunks_offset = 4096 + kDescriptors + 8192};
  const auto taken_by = [&](const std::function<void(SegmentBuilder&)>& claim) {
    SegmentBuilder segment(kPlaces);
    segment.Counter("my_app", "batches", {}, 7);
    claim(segment);
    const std::string path = in_memory / "a.seg";
    segment.WriteTo(path);
    const OwnedFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_EQ(ftruncate(file.get(), kPlaces.max_bytes), 0);
    EXPECT_EQ(fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, kDescriptors - 8192), 0);
    const auto blocks = [&] {
      struct stat info {};
      EXPECT_EQ(fstat(file.get(), &info), 0);
      return info.st_blocks;
    };
    const auto before = blocks();
    auto reader = SegmentReader::FromDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC), access_, problem_);
    std::vector<JobEvent> events;
    if (reader != nullptr && reader->Read(1, {}, problem_)) reader->ReadEvents(false, events);
    EXPECT_LT(reader == nullptr ? 0 : reader->records().size(), 1U << 18);
    return blocks() - before;
  };
  EXPECT_EQ(taken_by([](SegmentBuilder&) {}), 0);
  EXPECT_EQ(taken_by([](SegmentBuilder& s) { s.header().descriptors_used = kDescriptors; }), 0);
  EXPECT_EQ(taken_by([](SegmentBuilder& s) {
              constexpr uint32_t kChunks = 900;
              for (uint32_t lane = 0; lane < kChunks; ++lane) {
                const segment::ChunkEntry entry{lane, 1};
                std::memcpy(s.image().data() + kPlaces.directory_offset + lane * sizeof entry, &entry, sizeof entry);
              }
              s.header().chunks_used = kChunks;
            }),
            0);
  EXPECT_EQ(taken_by([](SegmentBuilder& s) {
              s.header().descriptors_capacity = kDescriptors / 2;
              s.header().ring_offset = 4096 + kDescriptors / 2;
              s.header().ring_slots = 1000;
              s.header().events_recorded = 1000;
            }),
            0);
}

// A file of the group that names another user's process would show that process's standard error to all.
TEST_F(HostileSegmentTest, OfAGroupsFileTheProcessIsBelievedOnlyIfItIsItsOwners) {
  SegmentBuilder segment;
  ProcReader proc;
  const auto name = [&](const std::string& pid) {
    segment.header().pid = static_cast<uint32_t>(std::stoul(pid));
    segment.header().pid_namespace = proc.PidNamespace("self").value();
    segment.header().start_ticks = proc.Stat(pid)->start_ticks;
    Put("a.seg", segment);
  };
  const auto believed = [&] { return Open()->header().pid_namespace != 0; };
  name(std::to_string(getpid()));
  EXPECT_TRUE(believed());
  access_ = {geteuid() + 1, getegid(), 1 << 30};  // the agent of another user, who shares the directory
  EXPECT_TRUE(believed());
  segment.header().start_ticks += 1;
  Put("a.seg", segment);
  EXPECT_FALSE(believed()) << "a process that has ended";
  if (geteuid() != 0) {
    name("1");
    EXPECT_FALSE(believed());
    return;
  }
  name(std::to_string(getpid()));
  ASSERT_EQ(chown(PathOf("a.seg").c_str(), 4711, getegid()), 0);
  EXPECT_FALSE(believed());
  access_.owner = 4711;
  EXPECT_TRUE(believed()) << "a user's agent believes its own files";
}

}  // namespace
}  // namespace persia::agent::testing
