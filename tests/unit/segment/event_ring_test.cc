// Event records of real processes, and of a ring that the test writes.
#include "segment/event_ring.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "persia/metrics/metrics.h"
#include "segment/segment_file.h"
#include "segment_format.h"
#include "worker.h"
#include "workers/job_directory_test.h"
#include "workers/segment_source.h"

namespace persia::agent::testing {
namespace {

namespace events = metrics::events;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kRingSlots = 256;

class EventRingTest : public metrics::tests::WorkerTest {
 protected:
  EventRingTest() { StartAgent(); }

  // Starts another agent, which continues at `tickets`.
  void StartAgent(std::map<std::string, uint64_t> tickets = {}) {
    source_ = std::make_unique<SegmentSource>(SegmentSourceOptions{.directory = directory(),
                                                                   .job = "dlrm",
                                                                   .ip_addr = "10.0.0.1",
                                                                   .reads_events = true,
                                                                   .event_positions = std::move(tickets)});
  }
  std::vector<JobEvent> Read() {
    static_cast<void>(source_->Collect());
    return source_->TakeEvents();
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const JobEvent& event : Read()) {
      names.push_back(event.name);
    }
    return names;
  }
  static void RecordMany(int count) {
    for (int i = 0; i < count; ++i) {
      events::Record("my_app", "e" + std::to_string(i));
    }
  }

  std::unique_ptr<SegmentSource> source_;
};

TEST_F(EventRingTest, AnEventHasAllItsFields) {
  Live worker(*this, [] {
    metrics::Init({.role = "trainer", .replica = 3});
    events::RecordEvent({.name = "saved",
                         .type = "my_app",
                         .metadata = {{"none", {}}, {"final", true}, {"bytes", int64_t{-7}}, {"s", 0.5}, {"path", "/c"}},
                         .timestamp = 1'700'000'000'250});
  });
  const std::vector<JobEvent> read = Read();
  ASSERT_EQ(read.size(), 1U);
  const JobEvent expected{.unix_ms = 1'700'000'000'250,
                          .type = "my_app",
                          .name = "saved",
                          .metadata = {{"none", {}}, {"final", true}, {"bytes", int64_t{-7}}, {"s", 0.5}, {"path", "/c"}},
                          .left_out = 0,
                          .identity = {"dlrm", {{"instance", "rep_3"}, {"ip_addr", "10.0.0.1"}, {"role", "trainer"}}},
                          .pid = static_cast<uint32_t>(worker.pid())};
  EXPECT_EQ(read[0], expected);
}

TEST_F(EventRingTest, EachEventIsReadOnceAndInOrder) {
  Live worker(
      *this, [] { RecordMany(3); }, [] { events::Record("my_app", "last"); });
  EXPECT_THAT(Names(), ElementsAre("e0", "e1", "e2"));
  EXPECT_THAT(Names(), IsEmpty());
  worker.Finish();
  EXPECT_THAT(Names(), ElementsAre("last")) << "recorded just before the process ended";
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(EventRingTest, OverwrittenRecordsCountAsLost) {
  Live worker(*this, [] { RecordMany(1000); });
  const std::vector<std::string> names = Names();
  ASSERT_EQ(names.size(), kRingSlots);
  EXPECT_EQ(names.back(), "e999");
  EXPECT_EQ(source_->stats().events_lost, 1000 - kRingSlots);
}

TEST_F(EventRingTest, ANewAgentContinuesWhereTheLastOneStopped) {
  Live worker(
      *this, [] { RecordMany(3); }, [] { events::Record("my_app", "last"); });
  Read();
  StartAgent(source_->EventPositions());
  EXPECT_THAT(Names(), IsEmpty());
  worker.Finish();
  EXPECT_THAT(Names(), ElementsAre("last"));
}

TEST_F(EventRingTest, MetadataThatDidNotFitIsCounted) {
  Live worker(*this, [] {
    const std::string large(2000, 'x');
    events::Record("my_app", "big", {{large, int64_t{1}}, {"small", int64_t{1}}});
  });
  const std::vector<JobEvent> read = Read();
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].left_out, 1U);
  EXPECT_EQ(read[0].metadata.size(), 1U);
}

// The test writes the ring itself, since no real writer can be stopped in the middle of a record.
class WrittenRingTest : public JobDirectoryTest {
 protected:
  WrittenRingTest() {
    segment_.header().ring_offset = kRingOffset;
    segment_.header().ring_slots = kSlots;
    Put("a.seg", segment_);
    SegmentProblem problem;
    file_ = SegmentFile::FromDescriptor(open(PathOf("a.seg").c_str(), O_RDONLY | O_CLOEXEC), {geteuid(), std::nullopt, 1 << 30},
                                        problem);
  }

  // The sequence of a ticket's record.
  static uint64_t BeingWritten(uint64_t ticket) { return 2 * ticket + 1; }
  static uint64_t Whole(uint64_t ticket) { return 2 * ticket + 2; }
  void Write(uint64_t ticket, uint64_t sequence, const std::string& name) {
    const std::string text = SegmentBuilder::String("my_app") + SegmentBuilder::String(name);
    const segment::EventFixed fixed{1, static_cast<uint32_t>(sizeof fixed + text.size()), 0, 0};
    const std::string slot = SegmentBuilder::Plain(sequence) + SegmentBuilder::Plain(fixed) + text;
    segment_.image().replace(kRingOffset + ticket % kSlots * segment::kEventSlotBytes, slot.size(), slot);
    segment_.header().events_recorded = std::max(segment_.header().events_recorded.load(), ticket + 1);
    Put("a.seg", segment_);
  }
  std::vector<std::string> Names(bool writer_lives = true) {
    std::vector<JobEvent> events;
    ring_.Read(*file_, writer_lives, events);
    std::vector<std::string> names;
    for (const JobEvent& event : events) {
      names.push_back(event.name);
    }
    return names;
  }

  // The address of the reader's map.
  std::byte* Map() const {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    while (std::getline(maps, line) && !line.ends_with(PathOf("a.seg"))) {
    }
    return reinterpret_cast<std::byte*>(std::stoull(line, nullptr, 16));
  }

  static constexpr uint64_t kSlots = 4;
  // The first slot spans two pages.
  static constexpr uint64_t kNextPage = 28672;
  static constexpr uint64_t kRingOffset = kNextPage - segment::kEventSlotBytes / 2;
  SegmentBuilder segment_{{.chunks_offset = kNextPage + segment::kPageBytes}};
  std::unique_ptr<SegmentFile> file_;
  EventRing ring_;
};

TEST_F(WrittenRingTest, AnIncompleteRecordAndLaterOnesWaitForTheNextRead) {
  Write(0, BeingWritten(0), "");
  Write(1, Whole(1), "second");
  EXPECT_THAT(Names(), IsEmpty());
  Write(0, Whole(0), "first");
  EXPECT_THAT(Names(), ElementsAre("first", "second"));
  EXPECT_EQ(ring_.lost(), 0U);
}

TEST_F(WrittenRingTest, ARecordOfAKilledWriterIsWaitedForOnce) {
  Write(0, BeingWritten(0), "");
  Write(1, Whole(1), "second");
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_THAT(Names(), ElementsAre("second"));
  EXPECT_EQ(ring_.lost(), 1U);
}

TEST_F(WrittenRingTest, NothingIsWaitedForAfterTheEndOfTheProcess) {
  Write(0, BeingWritten(0), "");
  Write(1, Whole(1), "second");
  Write(2, BeingWritten(2), "");
  Write(3, Whole(3), "fourth");
  EXPECT_THAT(Names(/*writer_lives=*/false), ElementsAre("second", "fourth"));
  EXPECT_EQ(ring_.lost(), 2U);
}

// Its segment is read once more after its end.
TEST_F(WrittenRingTest, AnEndedProcessLosesNoCompleteRecord) {
  Write(0, BeingWritten(0), "");
  Write(1, Whole(1), "second");
  SegmentSource source({.directory = directory(), .job = "dlrm", .reads_events = true});
  static_cast<void>(source.Collect());
  const std::vector<JobEvent> read = source.TakeEvents();
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].name, "second");
  EXPECT_EQ(source.stats().events_lost, 1U);
}

// Starts another record in a slot when the reader touches a page of its map.
class Overtaking {
 public:
  Overtaking(const std::string& path, uint64_t slot_offset, uint64_t sequence, void* page)
      : file_(open(path.c_str(), O_WRONLY | O_CLOEXEC)), slot_offset_(slot_offset), sequence_(sequence), page_(page) {
    armed_ = this;
    struct sigaction action {};
    action.sa_handler = [](int) { armed_->Begin(); };
    action.sa_flags = static_cast<int>(SA_RESETHAND);  // another fault ends the test
    sigaction(SIGSEGV, &action, &before_);
    mprotect(page_, segment::kPageBytes, PROT_NONE);
  }
  ~Overtaking() {
    sigaction(SIGSEGV, &before_, nullptr);
    close(file_);
  }
  Overtaking(const Overtaking&) = delete;
  Overtaking& operator=(const Overtaking&) = delete;

 private:
  void Begin() const {
    static_cast<void>(!pwrite(file_, &sequence_, sizeof sequence_, static_cast<off_t>(slot_offset_)));
    mprotect(page_, segment::kPageBytes, PROT_READ);
  }

  static inline Overtaking* armed_ = nullptr;
  const int file_;
  const uint64_t slot_offset_;
  const uint64_t sequence_;
  void* const page_;
  struct sigaction before_ {};
};

TEST_F(WrittenRingTest, ARecordOverwrittenDuringTheReadIsLost) {
  Write(0, Whole(0), "first");
  Write(1, Whole(1), "second");
  const Overtaking writer(PathOf("a.seg"), kRingOffset, BeingWritten(kSlots), Map() + kNextPage);
  EXPECT_THAT(Names(), ElementsAre("second"));
  EXPECT_EQ(ring_.lost(), 1U);
}

TEST_F(WrittenRingTest, ARecordWhoseEndIsCutOffIsReadOnceItIsThereAgain) {
  Write(0, Whole(0), "first");
  ASSERT_EQ(truncate(PathOf("a.seg").c_str(), kNextPage), 0);
  EXPECT_THAT(Names(/*writer_lives=*/false), IsEmpty());
  EXPECT_EQ(ring_.lost(), 0U);
  Put("a.seg", segment_);
  EXPECT_THAT(Names(/*writer_lives=*/false), ElementsAre("first"));
}

// A record with each of its words changed.
TEST(ParseEvent, MalformedRecordsAreRefused) {
  uint64_t words[(metrics::segment::kEventSlotBytes - 8) / 8] = {};
  const std::string text = std::string("\1\0\0\0t\1\0\0\0n\1\0\0\0k\4\1\0\0\0v", 21);
  metrics::segment::EventFixed fixed{5, static_cast<uint32_t>(sizeof fixed + text.size()), 1, 0};
  const auto record = [&](const metrics::segment::EventFixed& head) {
    std::memcpy(words, &head, sizeof head);
    std::memcpy(reinterpret_cast<char*>(words) + sizeof head, text.data(), text.size());
    return ParseEvent(words);
  };
  const auto good = record(fixed);
  ASSERT_TRUE(good);
  EXPECT_EQ(good->metadata.at(0).first, "k");
  for (const uint32_t bytes : {0U, 15U, fixed.bytes - 1, fixed.bytes + 1, 1017U, UINT32_MAX}) {
    EXPECT_FALSE(record({5, bytes, 1, 0})) << bytes;
  }
  EXPECT_FALSE(record({5, fixed.bytes, 0, 0})) << "fewer entries than the record has";
  EXPECT_FALSE(record({5, fixed.bytes, 2, 0})) << "more entries than the record has";
}

}  // namespace
}  // namespace persia::agent::testing
