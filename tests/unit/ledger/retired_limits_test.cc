// A job that creates ever more series, names and processes.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "ledger/retired_test.h"

namespace persia::agent::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST_F(RetiredTest, AProcessThatMakesSeriesWithoutEndIsHeldToTheLimit) {
  limits_ = {.series = 7, .series_of_instance = 4, .label_value_bytes = 8};
  StartAgent();
  const auto put = [&](Worker& process, int first, int last) {
    for (int i = first; i <= last; ++i) {
      process.segment.Counter("my_app", "step_" + std::to_string(i), {}, 1);
    }
    process.Put();
  };
  auto runaway = Start();
  put(*runaway, 1, 6);
  auto good = Start({.role = "server"});
  good->segment.Counter("my_app", "batches", {{"feat", "user"}}, 1);
  good->segment.Counter("my_app", "batches", {{"feat", "too long for us"}}, 1);
  good->Put();
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair(R"(my_app_batches{feat="user"}@rep_0/server)", "1"), Pair("my_app_step_1", "1"),
                                         Pair("my_app_step_2", "1"), Pair("my_app_step_3", "1"), Pair("my_app_step_4", "1")));
  EXPECT_EQ(source().stats().left_out.instance_limit, 2U);
  EXPECT_EQ(source().stats().left_out.label_value_limit, 1U);
  EXPECT_THAT(Diagnosed(),
              UnorderedElementsAre(HasSubstr("series of instance rep_0, role worker are left out, first of my_app_step_5: "
                                             "there are more than 4 of one instance"),
                                   HasSubstr("values of their label feat have more than 8 bytes")));
  auto many = Start({.role = "many"});
  put(*many, 1, 4);
  EXPECT_EQ(CountSeries(*Collect()->layout) - 3 * 13, 7U) << "beside the dropped counts of three instances";
  EXPECT_EQ(source().stats().left_out.agent_limit, 2U);

  runaway->End();
  Collect();
  EXPECT_EQ(Shown("my_app_step_4"), "1") << "what was shown goes on to be";
  EXPECT_EQ(Shown("my_app_step_5"), "");
  EXPECT_EQ(source().stats().left_out.instance_limit, 0U);
  EXPECT_EQ(source().stats().retired_series_refused, 2U);
}

TEST_F(RetiredTest, ExpiredGaugesAndHiddenInstancesDoNotCountAgainstTheLimits) {
  limits_ = {.series = 6, .series_of_instance = 4, .label_value_bytes = 8};
  StartAgent();
  auto gauges = Start();
  for (int i = 0; i < 4; ++i) {
    gauges->segment.Gauge("my_app", "g" + std::to_string(i), {}, 1);
  }
  gauges->Put();
  gauges->End();
  EXPECT_EQ(Shown("my_app_g3"), "1");
  auto steady = Start();
  steady->Put();
  for (int i = 0; i < 4; ++i) {
    passed_ += seconds(100);
    Collect();
  }
  steady->End();
  CountAndEnd(5);
  EXPECT_EQ(Batches(), "5") << "gauges whose time is over";
  for (const int replica : {1, 2, 3}) {
    CountAndEnd(1, 0, {.role = "came and left", .replica = replica});
    CountAndEnd(1, 0, {.role = "came and left", .replica = replica});
    Collect();
    passed_ += seconds(100);
  }
  passed_ += seconds(1000);
  for (const int replica : {10, 11, 12, 13}) {
    CountAndEnd(1, 0, {.role = "new", .replica = replica});
  }
  const Flat flat = CollectFlat();
  EXPECT_TRUE(flat.contains("my_app_batches@rep_13/new")) << "instances that left";
  EXPECT_EQ(source().stats().retired_series_refused, 0U);
}

TEST_F(RetiredTest, NamesWithoutEndDoNotMakeTheStateGrow) {
  limits_ = {.series = 100, .series_of_instance = 3, .label_value_bytes = 8};
  StartAgent();
  const auto run = [&](int number) {
    auto process = Start();
    process->segment.Counter("my_app", "name_" + std::to_string(number), {}, 1);
    process->segment.Counter("my_app", "labelled", {{"l", std::string(500, static_cast<char>('a' + number % 26))}}, 1);
    process->Put().End();
    Collect();
  };
  ExpectNoGrowth(run, 14);
}

TEST_F(RetiredTest, ExpiredGaugesAndTheirFamiliesLeaveTheState) {
  const auto run = [&](int number) {
    auto process = Start();
    process->segment.Gauge("my_app", "gauge_" + std::to_string(number), {}, 1);
    process->segment.Counter("my_app", "batches", {}, 1);
    process->Put().End();
    Collect();
    passed_ += seconds(301);
    Collect();
  };
  ExpectNoGrowth(run, 14);
  CountAndEnd(1);
  EXPECT_EQ(Batches(), "31");
}

TEST_F(RetiredTest, LabelsOfEachProcessDoNotMakeTheStateGrow) {
  limits_ = {.series = 100, .series_of_instance = 3, .label_value_bytes = 8};
  StartAgent();
  const auto run = [&](int number) {
    auto process = Start({.role = "worker", .labels = {{"pid", std::to_string(number)}}});
    process->segment.Counter("my_app", "batches", {}, 1);
    process->segment.Gauge("my_app", "size", {}, 1);
    process->segment.header().dropped[0] = 1;
    process->Put().End();
    Collect();
    passed_ += seconds(100);
  };
  ExpectNoGrowth(run, 16);
  const Flat flat = CollectFlat();
  EXPECT_EQ(flat.at(R"(my_app_batches{pid="10"})"), "1") << "what was exposed stays";
  EXPECT_EQ(flat.at(R"(persia_metrics_dropped_total{reason="bad_value"})"), "30");
  EXPECT_GT(source().stats().retired_series_refused, 0U);
}

TEST_F(RetiredTest, GroupsWhoseGaugesAllExpiredLeaveTheState) {
  const auto run = [&](int number) {
    auto process = Start({.role = "worker", .labels = {{"pid", std::to_string(number)}}});
    process->segment.Gauge("my_app", "size", {}, 1);
    process->segment.header().dropped[0] = 1;
    process->Put().End();
    Collect();
    passed_ += seconds(301);
    Collect();
  };
  ExpectNoGrowth(run, 14);
  EXPECT_EQ(CountAndEndThenShow(R"(persia_metrics_dropped_total{reason="bad_value"})"), "30");
}

TEST_F(RetiredTest, OfEndedInstancesTheLatestAreKept) {
  limits_ = {.series = 5, .series_of_instance = 3, .label_value_bytes = 8};
  StartAgent();
  for (int replica = 0; replica < 40; ++replica) {
    CountAndEnd(1, 0, {.role = "worker", .replica = replica});
    Collect();
    passed_ += seconds(301);
    Collect();
    EXPECT_LE(source().stats().retired_series_refused, static_cast<uint64_t>(std::max(0, replica - 4)));
  }
  CountAndEnd(1, 0, {.role = "worker", .replica = 39});
  CountAndEnd(1, 0, {.role = "worker", .replica = 1});
  EXPECT_EQ(Shown("my_app_batches@rep_39/worker"), "2") << "an instance that returns goes on counting";
  EXPECT_EQ(Shown("my_app_batches@rep_1/worker"), "1");
  EXPECT_LT(CheckpointBytes(), 3300U);
}

}  // namespace
}  // namespace persia::agent::testing
