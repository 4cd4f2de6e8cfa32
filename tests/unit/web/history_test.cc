#include "web/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/foreign_memory.h"
#include "web/history_fixture.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using TimePoint = std::chrono::steady_clock::time_point;

std::vector<int64_t> Times(const History& history) {
  std::vector<int64_t> times;
  for (const History::Entry& entry : history.Entries()) {
    times.push_back(entry.unix_ms);
  }
  return times;
}

std::shared_ptr<const Snapshot> Any(int64_t unix_ms = 0) {
  return MakeSnapshot({{"size", MetricType::kGauge, {}, {{{}, {1}}}}}, unix_ms);
}

TEST(History, KeepsWhatIsFarEnoughApartAndNotTooOld) {
  History history({.span = seconds(72)});  // a step of 100 ms
  EXPECT_EQ(history.stats().step, milliseconds(100));
  const TimePoint begin{seconds(1000)};
  for (const int at : {0, 50, 95, 120, 195, 300}) {
    history.Add(Any(5000 + at), begin + milliseconds(at));
  }
  EXPECT_THAT(Times(history), ElementsAre(5000, 5095, 5195, 5300)) << "a tick may be a little early";
  history.Add(Any(), begin + milliseconds(72'100));
  EXPECT_THAT(Times(history), ElementsAre(5195, 5300, 77'100));
  EXPECT_EQ(history.stats().entries, 3U);
  EXPECT_EQ(history.stats().oldest_unix_ms, 5195);
}

TEST(History, FormerLayoutsTakeAnEighthOfTheMemoryForWhatOthersHaveWritten) {
  ForeignShare::SetLimit(8 << 20);
  History history({.span = seconds(72)});
  for (int i = 0; i < 20; ++i) {
    const Labels labels = {{"label", std::to_string(i) + std::string(250'000, 'x')}};
    history.Add(MakeSnapshot({{"size", MetricType::kGauge, {}, {{labels, {1}}}}}, i), TimePoint(seconds(i)));
  }
  EXPECT_EQ(history.stats().entries, 5U);
  ForeignShare::SetLimit(ForeignShare::kDefaultLimit);
}

// A layout of a thousand ranks is as large as six of their collections.
TEST(History, ManyFormerLayoutsGiveWayToCollections) {
  History history({.span = seconds(720), .max_bytes = 8'000'000});
  std::shared_ptr<const Layout> layout;
  for (int i = 0; i < 400; ++i) {
    if (i < 20) {
      const Labels labels = {{"label", std::to_string(i) + std::string(250'000, 'x')}};
      layout = MakeSnapshot({{"size", MetricType::kGauge, {}, {{labels, {1}}}}}, i)->layout;
    }
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->layout = layout;
    snapshot->values.assign(10'000, i);
    history.Add(snapshot, TimePoint(seconds(i)));
  }
  EXPECT_GE(history.stats().entries, 70U) << "of 80 kB each, beside a quarter of the memory for former layouts";
}

TEST(History, AlwaysHasTheNewestCollection) {
  History history({.span = seconds(72)});
  const TimePoint begin{seconds(1000)};
  for (const int at : {0, 10, 20, 130, 140}) {
    history.Add(Any(5000 + at), begin + milliseconds(at));
    EXPECT_EQ(Times(history).back(), 5000 + at);
  }
  EXPECT_THAT(Times(history), ElementsAre(5000, 5130, 5140));
}

TEST(History, AChangeOfTheClockKeepsTheTimesInOrder) {
  History history({.span = seconds(720)});
  const TimePoint begin{seconds(1000)};
  history.Add(Any(1'000'000), begin);
  history.Add(Any(400'000), begin + seconds(2));
  history.Add(Any(9'000'000), begin + seconds(4));
  EXPECT_THAT(Times(history), ElementsAre(1'000'000, 1'002'000, 1'004'000));
}

TEST(History, StaysWithinItsMemory) {
  const std::vector<double> many(10'000, 1.0);
  std::vector<TestSeries> series;
  for (const double value : many) {
    series.push_back({{}, {value}});
  }
  const auto layout = MakeSnapshot({{"size", MetricType::kGauge, {}, series}})->layout;
  History history({.span = seconds(720), .max_bytes = 4'000'000});
  const TimePoint begin{seconds(1000)};
  for (int i = 0; i < 2000; ++i) {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->layout = layout;
    snapshot->values = many;
    history.Add(snapshot, begin + seconds(i));
  }
  const History::Stats stats = history.stats();
  EXPECT_LE(stats.bytes, 4'000'000U);
  EXPECT_GE(stats.entries, 20U) << "80 kB each, and a layout that all share";
  EXPECT_GE(Times(history).back() - Times(history).front(), 600'000) << "most of 720 s, with fewer entries";
}

// 35 collections of a job of a thousand ranks fit.
TEST(History, KeepsNewerCollectionsCloserTogetherIfNotAllFit) {
  const std::vector<double> many(10'000, 1.0);
  const auto layout = Any()->layout;
  History history({.max_bytes = 35 * 80'000});
  const TimePoint begin{seconds(1000)};
  for (int i = 0; i < 4000; ++i) {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->layout = layout;
    snapshot->values = many;
    history.Add(snapshot, begin + seconds(i));
  }
  const std::vector<int64_t> times = Times(history);
  const auto within = [&times](int64_t span) {
    return std::ranges::count_if(times, [&](int64_t time) { return time > times.back() - 1000 * span; });
  };
  EXPECT_LE(history.stats().step, seconds(10));
  EXPECT_GE(within(60), 6);
  EXPECT_GE(within(300), 15) << "in the time that the page shows first";
  EXPECT_GE(times.back() - times.front(), 1'600'000) << "nearly half an hour";
  for (size_t i = 1; i < times.size(); ++i) {
    EXPECT_LT(times[i] - times[i - 1], 10'000 + (times.back() - times[i - 1]) / 3) << "no gap is long for its age";
  }
}

TEST(History, CountsALayoutWhileASnapshotUsesIt) {
  const auto only = [](const std::shared_ptr<const Snapshot>& snapshot) {
    History history({.span = seconds(72)});
    history.Add(snapshot, TimePoint{seconds(1)});
    return history.stats().bytes;
  };
  const auto first = Any();
  const auto same = std::make_shared<Snapshot>(*first);
  const auto other = MakeSnapshot({{"size", MetricType::kGauge, {}, {{{{"a label", "of another layout"}}, {1}}}}});
  ASSERT_NE(only(first), only(other));
  History history({.span = seconds(72)});
  history.Add(first, TimePoint{seconds(1)});
  history.Add(same, TimePoint{seconds(70)});
  EXPECT_LT(history.stats().bytes, only(first) + only(same)) << "they share the layout";
  history.Add(other, TimePoint{seconds(74)});
  EXPECT_THAT(history.Entries(), SizeIs(2)) << "the first is dropped, its layout stays";
  EXPECT_EQ(history.stats().bytes, only(same) + only(other));
}

TEST(History, TenThousandCountersKeepHalfAnHour) {
  std::vector<TestSeries> series(10'000, TestSeries{{}, {1}});
  const auto layout = MakeSnapshot({{"size", MetricType::kCounter, {}, series}})->layout;
  History history({});
  const TimePoint begin{seconds(1000)};
  for (int i = 0; i <= 720; ++i) {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->layout = layout;
    snapshot->values.assign(10'000, i);
    history.Add(snapshot, begin + i * milliseconds(2500));
  }
  EXPECT_EQ(Times(history).back() - Times(history).front(), 1'800'000);
  EXPECT_LE(history.stats().bytes, size_t{64} << 20);
}

TEST(History, TheNewestStaysHoweverLargeItIs) {
  History history({.span = seconds(720), .max_bytes = 1});
  history.Add(Any(), TimePoint{seconds(1)});
  history.Add(Any(), TimePoint{seconds(3)});
  EXPECT_THAT(history.Entries(), SizeIs(1));
}

TEST(History, WithoutASpanNothingIsKept) {
  History history({});
  history.Add(Any(), TimePoint{seconds(1)});
  EXPECT_THAT(history.Entries(), SizeIs(1));
  history.SetOptions({.span = seconds(0)});
  history.Add(Any(), TimePoint{seconds(20)});
  EXPECT_THAT(history.Entries(), IsEmpty());
  EXPECT_EQ(history.stats().bytes, 0U);
}

// The collector adds them, and the threads of the pages read them.
TEST(History, IsReadWhileOthersAreAdded) {
  constexpr int64_t kLast = 2000;
  History history({.span = seconds(72)});
  std::jthread adder([&history] {
    for (int64_t i = 1; i <= kLast; ++i) history.Add(Any(i), TimePoint{seconds(1000)} + milliseconds(100 * i));
  });
  for (int64_t newest = 0; newest < kLast;) {
    const std::vector<int64_t> times = Times(history);
    ASSERT_TRUE(std::ranges::is_sorted(times));
    if (!times.empty()) newest = times.back();
  }
}

}  // namespace
}  // namespace persia::agent
