// Gauges of ended processes, ordinals, and ended instances.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "ledger/retired_group.h"
#include "ledger/retired_test.h"
#include "merge/merge.h"
#include "naming/naming.h"

namespace persia::agent::testing {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// The value of the only gauge of ended processes.
double MergedGauge(const RetiredGroup& group) {
  const PlainNaming naming;
  Diagnostics diagnostics;
  Merger merger({.job = "job"}, naming, diagnostics);
  const std::vector<Measurements> inputs = {group.Input()};
  const auto snapshot = merger.Merge(inputs, {}, {});
  for (const FamilyLayout& family : snapshot->layout->families) {
    if (family.type == MetricType::kGauge) return snapshot->values[family.series.front().first_value];
  }
  return -1;
}

TEST_F(RetiredTest, AGaugeOfAnEndedProcessExpires) {
  auto process = StartWithGauge(4);
  hide_ended_ = false;
  StartAgent();
  EXPECT_EQ(Size(), "4");
  process->End();
  EXPECT_EQ(Size(), "4");
  passed_ += seconds(200);
  StartAgent();
  EXPECT_EQ(Size(), "4");
  passed_ += seconds(99);
  EXPECT_EQ(Size(), "4");
  passed_ += seconds(1);
  EXPECT_EQ(Size(), "") << "an agent that came between does not make it longer";
}

TEST_F(RetiredTest, ALivingProcessOverridesAGaugeOfAnEndedOne) {
  auto former = StartWithGauge(4);
  former->End();
  EXPECT_EQ(Size(), "4");
  auto silent = Start();
  silent->segment.UnsetGauge("my_app", "size");
  silent->Put();
  EXPECT_EQ(Size(), "4") << "one that has not set it yet does not count";
  auto next = StartWithGauge(2);
  EXPECT_EQ(Size(), "2");
  next->End();
  EXPECT_EQ(Size(), "2") << "the process that ended last counts";
}

TEST_F(RetiredTest, GaugesOfThoseThatEndTogetherFollowThePolicy) {
  const std::tuple<GaugePolicy, const char*, const char*, const char*> cases[] = {{GaugePolicy::kSum, "9", "5", "14"},
                                                                                  {GaugePolicy::kMin, "2", "2", "2"},
                                                                                  {GaugePolicy::kMax, "4", "3", "4"},
                                                                                  {GaugePolicy::kAvg, "3", "2.5", "2.8"}};
  for (const auto& [policy, of_three, of_two, of_five] : cases) {
    SCOPED_TRACE(static_cast<int>(policy));
    run_id_ += "+";
    StartAgent();
    auto a = StartWithGauge(4, policy);
    auto b = StartWithGauge(2, policy);
    auto c = StartWithGauge(3, policy);
    EXPECT_EQ(Size(), of_three);
    for (auto* process : {&a, &b, &c}) {
      (*process)->End();
    }
    EXPECT_EQ(Size(), of_three);
    StartAgent();
    EXPECT_EQ(Size(), of_three);
    a = StartWithGauge(2, policy);
    b = StartWithGauge(3, policy);
    EXPECT_EQ(Size(), of_two) << "of the living alone";
    a->End();
    b->End();
    EXPECT_EQ(Size(), of_five) << "with those that ended before";
  }
}

TEST_F(RetiredTest, GaugesOfProcessesThatEndInDifferentTicksFollowThePolicyUntilEachExpires) {
  // For values 1, 2, 4 and 8 of processes that end one by one.
  const std::tuple<GaugePolicy, std::vector<std::string>> cases[] = {
      {GaugePolicy::kSum, {"15", "14", "12", "8", ""}}, {GaugePolicy::kMin, {"1", "2", "4", "8", ""}},
      {GaugePolicy::kMax, {"8", "8", "8", "8", ""}},    {GaugePolicy::kAvg, {"3.75", "4.666666666666667", "6", "8", ""}},
      {GaugePolicy::kLast, {"8", "8", "8", "8", ""}},
  };
  hide_ended_ = false;
  for (const bool restarts : {false, true}) {
    for (const auto& [policy, expected] : cases) {
      SCOPED_TRACE(std::to_string(static_cast<int>(policy)) + (restarts ? " with restarts of the agent" : ""));
      run_id_ += "+";
      StartAgent();
      std::vector<std::unique_ptr<Worker>> processes;
      for (const double value : {1, 2, 4, 8}) {
        processes.push_back(StartWithGauge(value, policy));
      }
      Collect();
      for (const auto& process : processes) {
        passed_ += seconds(10);
        process->End();
        Collect();
        if (restarts) {
          StartAgent();
        }
      }
      std::vector<std::string> shown = {Size()};
      passed_ += seconds(300 - 30);
      for (int i = 0; i < 4; ++i) {
        shown.push_back(Size());
        passed_ += seconds(10);
      }
      EXPECT_EQ(shown, expected);
    }
  }
}

TEST(RetiredGroupTest, OfManyEndedProcessesTheOldestGaugesAreCombined) {
  const std::tuple<GaugePolicy, double, double> cases[] = {
      {GaugePolicy::kSum, 1003, 999}, {GaugePolicy::kMin, 1, 1}, {GaugePolicy::kMax, 1, 1}, {GaugePolicy::kAvg, 1, 1}};
  for (const auto& [policy, of_all, after_the_oldest] : cases) {
    SCOPED_TRACE(static_cast<int>(policy));
    RetiredGroup group({.role = "worker"}, 0);
    const SegmentFamily family{.known = true,
                               .kind = persia::metrics::segment::Kind::kGauge,
                               .policy = policy,
                               .bounds = {},
                               .group = "my_app",
                               .name = "size",
                               .help = "",
                               .unit = ""};
    const size_t series = group.FindOrAddSeries(group.FindOrAddFamily(family, {}), 0, "", 0, 0, true);
    const std::chrono::steady_clock::time_point start{};
    for (size_t i = 0; i < RetiredGroup::kMaxValuesOfGauge + 3; ++i) {
      group.AddGaugeValue(series, {.value = 1, .expires = start + seconds(1000 + i)});
    }
    EXPECT_EQ(group.ValuesOf(series).size(), RetiredGroup::kMaxValuesOfGauge);
    EXPECT_EQ(MergedGauge(group), of_all);
    group.ExpireGauges(start + seconds(1000));
    EXPECT_EQ(MergedGauge(group), after_the_oldest) << "four are combined, and expire with the oldest of them";
  }
}

TEST_F(RetiredTest, ANewProcessGetsTheOrdinalOfAnEndedOne) {
  auto a = StartWithGauge(1, GaugePolicy::kEach);
  auto b = StartWithGauge(2, GaugePolicy::kEach);
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair(R"(my_app_size{process="0"})", "1"), Pair(R"(my_app_size{process="1"})", "2")));
  a->End();
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair(R"(my_app_size{process="0"})", "1"), Pair(R"(my_app_size{process="1"})", "2")));
  auto next = StartWithGauge(3, GaugePolicy::kEach);
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair(R"(my_app_size{process="0"})", "3"), Pair(R"(my_app_size{process="1"})", "2")));

  b->End();
  Collect();
  std::vector<std::string> ordinals;
  for (const Process& process : source().processes()) {
    ordinals.push_back(std::to_string(process.ordinal) + (process.alive ? " alive after " : " empty after ") +
                       std::to_string(process.predecessors));
  }
  EXPECT_THAT(ordinals, UnorderedElementsAre("0 alive after 1", "1 empty after 1"));
}

TEST_F(RetiredTest, ARestartIsAProcessThatCameAfterAnother) {
  const auto restarts = [this] {
    Collect();
    return source().processes()[0].restarts;
  };
  auto process = StartWithGauge(1);
  EXPECT_EQ(restarts(), 0U);
  for (const uint64_t before : {0U, 1U, 2U}) {
    process->End();
    EXPECT_EQ(restarts(), before) << "no process came";
    EXPECT_EQ(restarts(), before) << "the end is in the state";
    process = StartWithGauge(1);
    EXPECT_EQ(restarts(), before + 1);
  }
  StartAgent();
  EXPECT_EQ(restarts(), 3U);
}

// Of each process that is listed, by ordinal.
std::map<uint32_t, uint64_t> RestartsOf(SegmentSource& source) {
  std::map<uint32_t, uint64_t> restarts;
  for (const Process& process : source.processes()) restarts[process.ordinal] = process.restarts;
  return restarts;
}

// The next agent finds at once the ends that this one found one after another, and gives those processes other ordinals.
TEST_F(RetiredTest, RestartsThatCannotBeWrittenAreNotCounted) {
  std::filesystem::create_directories(PathOf("agent.state.draft/in/the/way"));
  for (const int ended : {1, 2}) {
    auto process = StartWithGauge(ended);
    Collect();
    EXPECT_THAT(RestartsOf(source()), ElementsAre(Pair(0U, 0U)));
    process->End();
    Collect();
    EXPECT_THAT(RestartsOf(source()), ElementsAre(Pair(0U, 0U)));
  }
  const auto last = StartWithGauge(3);
  Collect();
  EXPECT_THAT(RestartsOf(source()), ElementsAre(Pair(0U, 0U)));
  std::filesystem::remove_all(PathOf("agent.state.draft"));
  passed_ += seconds(60);
  Collect();  // tries again
  Collect();
  EXPECT_THAT(RestartsOf(source()), ElementsAre(Pair(0U, 2U)));
}

// No agent sees that the one ends and the other takes its role: as if it could not write it before it was killed.
TEST_F(RetiredTest, AnEndedProcessKeepsItsOrdinalFromAnOlderOneThatTakesItsRole) {
  auto older = Start({.role = "reader"});
  older->segment.header().birth_unix_ns = 1;
  older->Put();
  const auto ended = StartWithGauge(1);
  Collect();
  ended->End();
  older->segment.Identity({.role = "worker"});
  older->Put();
  StartAgent();
  Collect();
  Collect();
  EXPECT_THAT(RestartsOf(source()), ElementsAre(Pair(0U, 1U)));
}

TEST_F(RetiredTest, AProcessThatCameFromAnotherRoleTakesNoOrdinalFromALivingOne) {
  const auto lives = StartWithGauge(1);
  auto moves = Start({.role = "reader"});
  moves->Put();
  Collect();
  moves->segment.Identity({.role = "worker"});
  moves->End();
  StartAgent();
  Collect();
  Collect();
  EXPECT_THAT(RestartsOf(source()), ElementsAre(Pair(0U, 0U), Pair(1U, 0U)));
}

TEST_F(RetiredTest, ASuccessorStartedBeforeTheNextCollectGetsTheOrdinal) {
  auto a = StartWithGauge(1, GaugePolicy::kEach);
  auto b = StartWithGauge(2, GaugePolicy::kEach);
  Collect();
  b->End();
  auto next = StartWithGauge(3, GaugePolicy::kEach);
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair(R"(my_app_size{process="0"})", "1"), Pair(R"(my_app_size{process="1"})", "3")));
  std::map<uint32_t, uint64_t> predecessors;
  for (const Process& process : source().processes()) {
    predecessors[process.ordinal] = process.predecessors;
  }
  EXPECT_THAT(predecessors, ElementsAre(Pair(0U, 0U), Pair(1U, 1U)));
}

TEST_F(RetiredTest, ProcessesKeepTheirOrdinalsOverARestartOfTheAgent) {
  const auto ordinals = [this] {
    Collect();
    std::map<uint32_t, std::string> by_ordinal;
    for (const Process& process : source().processes()) {
      by_ordinal[process.ordinal] = (process.alive ? "alive after " : "empty after ") + std::to_string(process.predecessors);
    }
    return by_ordinal;
  };
  auto a = StartWithGauge(1);
  auto b = StartWithGauge(2);
  auto c = StartWithGauge(3);
  Collect();
  b->End();
  c->End();
  Collect();
  auto d = StartWithGauge(4);  // gets the ordinal of b
  auto e = StartWithGauge(5);  // gets the ordinal of c
  Collect();
  a->End();
  d->End();
  const auto before = ordinals();
  EXPECT_THAT(before, ElementsAre(Pair(0U, "empty after 1"), Pair(1U, "empty after 2"), Pair(2U, "alive after 1")));
  StartAgent();
  EXPECT_EQ(ordinals(), before);
  auto f = StartWithGauge(6);
  const auto with_f = ordinals();
  EXPECT_EQ(with_f.at(0), "alive after 1");
  StartAgent();
  EXPECT_EQ(ordinals(), with_f);
}

TEST_F(RetiredTest, AProcessKeepsItsOrdinalIfALowerOneEndedWithoutAnAgent) {
  auto a = StartWithGauge(1, GaugePolicy::kEach);
  Collect();
  auto b = StartWithGauge(2, GaugePolicy::kEach);
  const auto shown = CollectFlat();
  EXPECT_THAT(shown, ElementsAre(Pair(R"(my_app_size{process="0"})", "1"), Pair(R"(my_app_size{process="1"})", "2")));
  a->End();
  StartAgent();
  EXPECT_EQ(CollectFlat(), shown);
}

TEST_F(RetiredTest, AnEndedInstanceIsHiddenAndComesBackWithItsCounts) {
  CountAndEnd(5);
  auto other = Start({.role = "server"});
  other->segment.Counter("my_app", "batches", {}, 1);
  other->Put();
  passed_ += seconds(10);
  EXPECT_EQ(Batches(), "5");
  passed_ += seconds(299);
  EXPECT_EQ(Batches(), "5");
  passed_ += seconds(1);
  EXPECT_THAT(CollectFlat(), ElementsAre(Pair("my_app_batches@rep_0/server", "1")));
  StartAgent();
  EXPECT_EQ(Batches(), "") << "it has left for the next agent too";
  CountAndEnd(6);
  EXPECT_EQ(Batches(), "11");
  passed_ += seconds(1000);
  hide_ended_ = false;
  StartAgent();
  EXPECT_EQ(Batches(), "11") << "on_instance_end: keep";
}

TEST_F(RetiredTest, AWallClockThatIsSetBackEndsNothingEarly) {
  CountAndEnd(5);
  Collect();
  passed_ -= seconds(100'000);
  StartAgent();
  EXPECT_EQ(Batches(), "5");
  passed_ += seconds(299);
  EXPECT_EQ(Batches(), "5");
}

TEST_F(RetiredTest, AWallClockThatIsSetWhileTheAgentLivesChangesNothing) {
  auto process = StartWithGauge(4);
  EXPECT_EQ(Size(), "4");
  process->End();
  EXPECT_EQ(Size(), "4");
  for (const seconds set : {seconds(1'000'000), seconds(-1'000'000), seconds(0)}) {
    wall_set_ = set;
    passed_ += seconds(99);
    EXPECT_EQ(Size(), "4") << set.count();
  }
  wall_set_ = seconds(-1'000'000);
  passed_ += seconds(3);
  EXPECT_EQ(Size(), "") << "its time is over by the steady clock";
}

}  // namespace
}  // namespace persia::agent::testing
