#include "app/collector.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "base/manual_clock.h"

namespace persia::agent {
namespace {

using namespace std::chrono_literals;

// A collector with a tick every 10 s, whose collections the test can hold up.
class CollectorTest : public ::testing::Test {
 protected:
  Collector::Options Options() {
    return {.interval = 10s,
            .clock = &clock_,
            .collect =
                [this](Depth depth) {
                  ++collections_;
                  if (depth == Depth::kLast) ++last_collections_;
                  if (held_) {
                    began_.release();
                    go_on_.acquire();
                  }
                  return std::make_shared<const Snapshot>();
                },
            .on_tick =
                [this](const std::shared_ptr<const Snapshot>&) {
                  ++ticks_;
                  ticked_.release();
                },
            .on_skipped = [this](uint64_t ticks) { skipped_ += ticks; }};
  }

  ManualClock clock_;
  std::atomic<int> collections_ = 0;
  std::atomic<int> last_collections_ = 0;
  std::atomic<int> ticks_ = 0;
  std::atomic<uint64_t> skipped_ = 0;
  std::atomic<bool> held_ = false;
  std::counting_semaphore<> began_{0};
  std::counting_semaphore<> go_on_{0};
  std::counting_semaphore<> ticked_{0};
  Collector collector_{Options()};
};

TEST_F(CollectorTest, ANewIntervalTicksAtOnceAndHoldsFromThenOn) {
  collector_.Start();
  ticked_.acquire();
  clock_.AwaitWaits(1);
  collector_.SetInterval(2s);
  ticked_.acquire();
  clock_.AwaitWaits(2);
  EXPECT_EQ(ticks_, 2);
  clock_.Advance(1999ms);
  clock_.AwaitWaits(3);
  EXPECT_EQ(ticks_, 2);
  clock_.Advance(1ms);
  ticked_.acquire();
  EXPECT_EQ(ticks_, 3);
  EXPECT_EQ(skipped_, 0u);
}

TEST_F(CollectorTest, FirstTickIsAtOnceAndTheNextAfterAnInterval) {
  EXPECT_EQ(collector_.Newest(), nullptr);
  collector_.Start();
  ticked_.acquire();
  clock_.AwaitWaits(1);
  EXPECT_EQ(ticks_, 1);
  EXPECT_NE(collector_.Newest(), nullptr);
  clock_.Advance(9999ms);
  clock_.AwaitWaits(2);
  EXPECT_EQ(ticks_, 1);
  clock_.Advance(1ms);
  ticked_.acquire();
  EXPECT_EQ(ticks_, 2);
}

class LooksTest : public ::testing::Test {
 protected:
  // The seconds of ticks, one every 10 s, and in parentheses of looks, each second. Each collection takes so long.
  std::string Timeline(std::chrono::milliseconds took, int seconds, bool is_quiet = false) {
    ManualClock clock;
    const auto began = clock.Now();
    std::string seen;
    const auto note = [&](const char* before, const char* after) {
      const auto at = std::chrono::duration_cast<std::chrono::seconds>(clock.Now() - began).count();
      seen += (seen.empty() ? "" : " ") + std::string(before) + std::to_string(at) + after;
    };
    Collector collector({.interval = 10s,
                         .look_interval = 1s,
                         .clock = &clock,
                         .collect =
                             [&](Depth depth) {
                               if (depth != Depth::kLast) clock.Advance(took);
                               return std::make_shared<const Snapshot>();
                             },
                         .on_tick = [&](const auto&) { note("", ""); },
                         .on_look = [&](const auto&) { note("(", ")"); },
                         .is_quiet = [&] { return is_quiet; },
                         .on_skipped = [](uint64_t) {}});
    collector.Start();
    for (int step = 1; step <= seconds; ++step) {
      clock.AwaitWaits(step);
      clock.Advance(1s - std::chrono::duration_cast<std::chrono::milliseconds>(clock.Now() - began) % 1s);
    }
    clock.AwaitWaits(seconds + 1);
    collector.Stop();
    return seen;
  }
};

TEST_F(LooksTest, AreEachSecondBetweenTwoTicks) {
  EXPECT_EQ(Timeline(1ms, 12), "0 (1) (2) (3) (4) (5) (6) (7) (8) (9) 10 (11) (12)");
}

TEST_F(LooksTest, AreRareWhereACollectionIsDear) {
  EXPECT_EQ(Timeline(40ms, 21), "0 (4) 10 (14) 20") << "4 s apart, and none just before a tick";
  EXPECT_EQ(Timeline(200ms, 11), "0 10");
}

TEST_F(LooksTest, OfAJobInWhichNothingHappensAreRare) {
  EXPECT_EQ(Timeline(1ms, 21, /*is_quiet=*/true), "0 10 20") << "10 s apart";
  EXPECT_EQ(Timeline(0ms, 2, /*is_quiet=*/true), "0 (1) (2)");
}

TEST_F(LooksTest, AreNotForScrapes) {
  ManualClock clock;
  std::string collected;
  Collector collector({.interval = 10s,
                       .look_interval = 1s,
                       .clock = &clock,
                       .collect =
                           [&](Depth depth) {
                             collected += depth == Depth::kLook ? 'l' : depth == Depth::kFull ? 'f' : 'e';
                             return std::make_shared<const Snapshot>();
                           },
                       .on_tick = [](const auto&) {},
                       .on_skipped = [](uint64_t) {}});
  collector.Start();
  clock.AwaitWaits(1);
  const auto tick = collector.Newest();
  clock.Advance(1s);
  clock.AwaitWaits(2);
  EXPECT_NE(collector.Newest(), tick);
  EXPECT_EQ(collector.NoOlderThan(1s), tick);
  EXPECT_EQ(collected, "fl");
  EXPECT_NE(collector.NoOlderThan(500ms), tick);
  EXPECT_EQ(collected, "flf");
  EXPECT_EQ(collector.Newest(), collector.NoOlderThan(0s));
  collector.Stop();
  EXPECT_EQ(collected, "flfe");
}

TEST_F(CollectorTest, TicksDoNotDriftByWhatTheWorkTakes) {
  held_ = true;
  collector_.Start();
  began_.acquire();
  clock_.Advance(4s);  // the duration of the first collection
  held_ = false;
  go_on_.release();
  ticked_.acquire();
  clock_.AwaitWaits(1);
  clock_.Advance(6s);  // 10 s after the start, not 14
  ticked_.acquire();
  EXPECT_EQ(skipped_, 0u);
}

TEST_F(CollectorTest, TicksDoNotDriftAfterALateOne) {
  collector_.Start();
  ticked_.acquire();
  clock_.AwaitWaits(1);
  clock_.Advance(13s);
  ticked_.acquire();
  clock_.AwaitWaits(2);
  clock_.Advance(7s);  // 20 s after the start, not 23
  ticked_.acquire();
  EXPECT_EQ(skipped_, 0u);
}

TEST_F(CollectorTest, TicksThatTheWorkOverranAreLeftOutAndCounted) {
  held_ = true;
  collector_.Start();
  began_.acquire();
  clock_.Advance(35s);  // over the ticks at 10, 20 and 30 s
  held_ = false;
  go_on_.release();
  ticked_.acquire();
  ticked_.acquire();  // the one of 10 s, late; 20 and 30 are left out
  clock_.AwaitWaits(1);
  EXPECT_EQ(skipped_, 2u);
  EXPECT_EQ(ticks_, 2);
  clock_.Advance(5s);  // 40 s
  ticked_.acquire();
  EXPECT_EQ(skipped_, 2u);
}

TEST_F(CollectorTest, ScrapeOfSomethingOldCollectsWithoutATick) {
  collector_.Start();
  ticked_.acquire();
  clock_.AwaitWaits(1);
  clock_.Advance(1s);
  const auto old = collector_.Newest();
  EXPECT_EQ(collector_.NoOlderThan(1s), old);
  EXPECT_EQ(collections_, 1);
  clock_.Advance(1ms);
  EXPECT_NE(collector_.NoOlderThan(1s), old);
  EXPECT_EQ(collections_, 2);
  EXPECT_EQ(ticks_, 1);
}

TEST_F(CollectorTest, ScrapesAtOnceShareOneCollection) {
  collector_.Start();
  ticked_.acquire();
  clock_.AwaitWaits(1);
  clock_.Advance(5s);
  held_ = true;
  std::vector<std::thread> scrapes;
  std::vector<std::shared_ptr<const Snapshot>> results(8);
  for (auto& result : results) {
    scrapes.emplace_back([&] { result = collector_.NoOlderThan(1s); });
  }
  began_.acquire();
  held_ = false;
  go_on_.release();
  for (std::thread& scrape : scrapes) {
    scrape.join();
  }
  EXPECT_EQ(collections_, 2);
  for (const auto& result : results) {
    EXPECT_EQ(result, results[0]);
  }
}

TEST_F(CollectorTest, StopCollectsOnceMore) {
  collector_.Start();
  ticked_.acquire();
  const auto before = collector_.Newest();
  EXPECT_EQ(last_collections_, 0);
  const auto last = collector_.Stop();
  EXPECT_EQ(collections_, 2);
  EXPECT_EQ(last_collections_, 1);
  EXPECT_EQ(ticks_, 1);
  EXPECT_NE(last, before);
  EXPECT_EQ(collector_.NoOlderThan(0s), last);
}

TEST_F(CollectorTest, SilenceIsNoticed) {
  held_ = true;
  collector_.Start();
  began_.acquire();
  clock_.Advance(30s);
  EXPECT_TRUE(collector_.AliveWithin(30s));
  clock_.Advance(1ms);
  EXPECT_FALSE(collector_.AliveWithin(30s));
  held_ = false;
  go_on_.release();
  ticked_.acquire();
  ticked_.acquire();
  clock_.AwaitWaits(1);
  EXPECT_TRUE(collector_.AliveWithin(30s));
}

}  // namespace
}  // namespace persia::agent
