// Events: counts that lose nothing, a ring that overwrites its oldest.
#include "persia/metrics/events.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "segment_format.h"
#include "worker.h"

namespace persia::metrics::tests {
namespace {

class EventsTest : public WorkerTest {};

uint64_t NowMs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

TEST_F(EventsTest, ARecordHoldsAllKindsOfMetadata) {
  const uint64_t before = NowMs();
  const auto segment = SegmentOf([] {
    events::Record(
        "my_app", "checkpoint",
        {{"text", "a \"b\"\n"}, {"int", int64_t{-5}}, {"float", 2.5}, {"yes", true}, {"nothing", std::monostate()}, {"", ""}});
    events::Record("default");
  });
  ASSERT_EQ(segment.events.size(), 2U);
  EXPECT_EQ(segment.events[0].type, "my_app");
  EXPECT_EQ(segment.events[0].name, "checkpoint");
  EXPECT_EQ(segment.events[0].metadata, "text='a \"b\"\n';int=-5;float=2.500000;yes=true;nothing=null;='';");
  EXPECT_EQ(segment.events[0].left_out, 0U);
  EXPECT_GE(segment.events[0].unix_ms, before);
  EXPECT_LE(segment.events[0].unix_ms, NowMs());
  EXPECT_EQ(segment.events[1].type, "torchelastic");
  EXPECT_EQ(segment.series.at("my_app/checkpoint").last_ms, segment.events[0].unix_ms);
}

TEST_F(EventsTest, CountsAndIntervalsOutliveTheRing) {
  constexpr int kEvents = 1000;
  const auto segment = SegmentOf([] {
    for (int i = 0; i < kEvents; ++i) {
      events::Record("t", "step", {{"i", int64_t{i}}});
    }
  });
  const SeriesView& series = segment.series.at("t/step");
  EXPECT_EQ(series.whole, static_cast<uint64_t>(kEvents));
  EXPECT_EQ(series.Count(), static_cast<uint64_t>(kEvents) - 1);
  EXPECT_EQ(segment.events_recorded, static_cast<uint64_t>(kEvents));
  ASSERT_EQ(segment.events.size(), 256U);
  EXPECT_EQ(segment.events.front().metadata, "i=744;");
  EXPECT_EQ(segment.events.back().metadata, "i=999;");
}

TEST_F(EventsTest, TextsThatDoNotFitAreShortened) {
  std::string accents;
  for (int i = 0; i < 1000; ++i) accents += "\u00e9";
  const auto segment = SegmentOf([&] {
    events::Record("t", "e", {{"a", "1"}, {"large", std::string(5000, 'x')}, {"b", int64_t{2}}, {"c", std::string(200, 'y')}});
    events::Record("t", "e", {{"one", accents}, {"two", accents}});
    events::Record("t", "e", {{"text", std::string(900, 'z')}, {"yes", true}, {"nothing", std::monostate()}});
  });
  ASSERT_EQ(segment.events.size(), 3U);
  const std::string& first = segment.events[0].metadata;
  EXPECT_EQ(first.substr(0, 20), "a='1';large='xxxxxxx");
  EXPECT_EQ(first.substr(first.find('.')), "...';b=2;c='" + std::string(200, 'y') + "';");
  EXPECT_GT(first.size(), 900U) << "what the others leave";
  const std::string& second = segment.events[1].metadata;
  const std::string half = second.substr(5, second.find('.') - 5);
  EXPECT_EQ(second, "one='" + half + "...';two='" + half + "...';");
  EXPECT_EQ(half, accents.substr(0, half.size())) << "between two characters";
  EXPECT_EQ(half.size() % 2, 0U);
  EXPECT_GT(half.size(), 440U);
  EXPECT_EQ(segment.events[2].metadata, "text='" + std::string(900, 'z') + "';yes=true;nothing=null;");
  for (const EventView& event : segment.events) EXPECT_EQ(event.left_out, 0U);
  EXPECT_EQ(segment.dropped.at(static_cast<size_t>(segment::Drop::kEventTruncated)), 2U);
}

TEST_F(EventsTest, OfEntriesWithOneNameTheLastOneIsKept) {
  const auto segment = SegmentOf([] { events::Record("t", "e", {{"a", "1"}, {"b", "2"}, {"a", int64_t{3}}, {"", true}}); });
  ASSERT_EQ(segment.events.size(), 1U);
  EXPECT_EQ(segment.events[0].metadata, "b='2';a=3;=true;");
  EXPECT_EQ(segment.events[0].left_out, 1U);
}

TEST_F(EventsTest, MetadataThatDoesNotFitIsLeftOutEntryByEntry) {
  const auto segment = SegmentOf([] {
    events::Record("t", "e", {{"a", "1"}, {std::string(2000, 'x'), "large"}, {"b", "2"}});
    events::Record("t", std::string(257, 'n'));
  });
  ASSERT_EQ(segment.events.size(), 1U);
  EXPECT_EQ(segment.events[0].metadata, "a='1';b='2';");
  EXPECT_EQ(segment.events[0].left_out, 1U);
  EXPECT_EQ(segment.dropped.at(static_cast<size_t>(segment::Drop::kEventTruncated)), 1U);
  EXPECT_EQ(segment.dropped.at(static_cast<size_t>(segment::Drop::kBadName)), 1U);
}

TEST_F(EventsTest, EventsOfManyThreadsAllCountAndRecordsAreWhole) {
  constexpr int kThreads = 4;
  constexpr int kEvents = 5000;
  const auto segment = SegmentOf([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        const std::string text(static_cast<size_t>(100 + t), static_cast<char>('a' + t));
        for (int i = 0; i < kEvents; ++i) {
          events::Record("t", "e", {{"text", text}});
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  });
  EXPECT_EQ(segment.series.at("t/e").whole, static_cast<uint64_t>(kThreads) * kEvents);
  EXPECT_EQ(segment.events_recorded, static_cast<uint64_t>(kThreads) * kEvents);
  const uint64_t overrun = segment.dropped.at(static_cast<size_t>(segment::Drop::kEventOverrun));
  EXPECT_GE(segment.events.size() + overrun, 256U);
  for (const EventView& event : segment.events) {
    const char letter = event.metadata.at(6);
    EXPECT_EQ(event.metadata, "text='" + std::string(static_cast<size_t>(100 + letter - 'a'), letter) + "';");
  }
}

}  // namespace
}  // namespace persia::metrics::tests
