// The event records of real processes, as the agent reads them.
#include "source/event_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "persia/metrics/metrics.h"
#include "segment_format.h"
#include "source/segment_source.h"
#include "worker.h"

namespace persia::agent::testing {
namespace {

namespace events = metrics::events;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kRingSlots = 256;

class EventRingTest : public metrics::testing::WorkerTest {
 protected:
  EventRingTest() { StartAgent(); }

  // Another agent; `tickets` are what the one before left.
  void StartAgent(std::map<std::string, uint64_t> tickets = {}) {
    source_ = std::make_unique<SegmentSource>(SegmentSourceOptions{.directory = directory(),
                                                                   .job = "dlrm",
                                                                   .ip_addr = "10.0.0.1",
                                                                   .reads_events = true,
                                                                   .event_tickets = std::move(tickets)});
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
      events::Record("e" + std::to_string(i), "my_app");
    }
  }

  std::unique_ptr<SegmentSource> source_;
};

TEST_F(EventRingTest, AnEventComesWithAllThatBelongsToIt) {
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

TEST_F(EventRingTest, EachComesOnceAndInItsOrder) {
  Live worker(
      *this, [] { RecordMany(3); }, [] { events::Record("last", "my_app"); });
  EXPECT_THAT(Names(), ElementsAre("e0", "e1", "e2"));
  EXPECT_THAT(Names(), IsEmpty());
  worker.Finish();
  EXPECT_THAT(Names(), ElementsAre("last")) << "what a process says before it ends";
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(EventRingTest, WhatWasOverwrittenIsCountedAsLost) {
  Live worker(*this, [] { RecordMany(1000); });
  const std::vector<std::string> names = Names();
  ASSERT_EQ(names.size(), kRingSlots);
  EXPECT_EQ(names.back(), "e999");
  EXPECT_EQ(source_->stats().events_lost, 1000 - kRingSlots);
}

TEST_F(EventRingTest, AnotherAgentGoesOnWhereTheOneBeforeWas) {
  Live worker(
      *this, [] { RecordMany(3); }, [] { events::Record("last", "my_app"); });
  Read();
  StartAgent(source_->EventTickets());
  EXPECT_THAT(Names(), IsEmpty());
  worker.Finish();
  EXPECT_THAT(Names(), ElementsAre("last"));
}

TEST_F(EventRingTest, OfTheMetadataThatDidNotFitItIsSaidHowMuch) {
  Live worker(*this, [] {
    const std::string large(2000, 'x');
    events::Record("big", "my_app", {{"large", std::string_view(large)}, {"small", int64_t{1}}});
  });
  const std::vector<JobEvent> read = Read();
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].left_out, 1U);
  EXPECT_EQ(read[0].metadata.size(), 1U);
}

// A record, changed in each of its words.
TEST(ParseEvent, WhatContradictsTheGrammarIsRefused) {
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
  EXPECT_FALSE(record({5, fixed.bytes, 0, 0})) << "more than it says";
  EXPECT_FALSE(record({5, fixed.bytes, 2, 0})) << "less than it says";
}

}  // namespace
}  // namespace persia::agent::testing
