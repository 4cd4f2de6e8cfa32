#include "health/run_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "health/summary_text.h"

namespace persia::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json Deaths() {
  return Json::array({{{"text", "trainer rep_1 died: SIGKILL"},
                       {"ended_ms", 1000},
                       {"look_at", "the kernel's log\nof the host"},
                       {"step", 812}}});
}

RunSummary SampleRun() {
  GoodputReport report;
  auto& first = report.ranks.emplace_back(GoodputReport::Rank{.rank = {"trainer", 0}, .marks = true, .step = 99});
  first.time[static_cast<size_t>(Bucket::kCompute)] = seconds(3000);
  first.time[static_cast<size_t>(Bucket::kDown)] = seconds(600);
  first.redone_steps = 12;
  first.restarts = 2;
  first.repair = seconds(800);
  auto& second = report.ranks.emplace_back(GoodputReport::Rank{.rank = {"server", 1}});
  second.time[static_cast<size_t>(Bucket::kUnmarked)] = seconds(3605);
  return {.job = "dlrm",
          .run_id = "3f2a",
          .agent_version = "0.1.0",
          .exit_code = 0,
          .seconds = 3605,
          .goodput = InSeconds(report),
          .deaths = Deaths()};
}

std::string ErrorOf(const std::string& text) {
  const auto parsed = ParseSummary(text);
  return parsed.ok() ? "" : parsed.error();
}

// The sample's JSON, changed.
std::string With(const std::string& member, const Json& value) {
  Json json = SummaryJson(SampleRun());
  json[member] = value;
  return WriteJson(json);
}

TEST(RunSummaryTest, IsReadAsItWasWritten) {
  const auto read = ParseSummary(WriteJson(SummaryJson(SampleRun())));
  ASSERT_TRUE(read.ok()) << read.error();
  EXPECT_EQ(read.value(), SampleRun());
}

TEST(RunSummaryTest, TheRatioIsOfRanksThatMarkPhases) {
  const Json json = SummaryJson(SampleRun());
  EXPECT_DOUBLE_EQ(json["goodput_ratio"].get<double>(), 3000.0 / 3600);
  EXPECT_EQ(json["rank_seconds"], 7205);
  EXPECT_EQ(json["bucket_seconds"]["unmarked"], 3605);
  EXPECT_EQ(json["mean_time_to_repair_seconds"], 400);
  EXPECT_EQ(json["ranks"][0]["highest_step"], 99);
  EXPECT_TRUE(json["ranks"][1]["highest_step"].is_null());
}

TEST(RunSummaryTest, WithoutMarksAndRestartsThereIsNoRatioAndNoRepair) {
  RunSummary summary = SampleRun();
  summary.goodput.ranks.erase(summary.goodput.ranks.begin());
  summary.exit_code.reset();
  const Json json = SummaryJson(summary);
  EXPECT_TRUE(json["goodput_ratio"].is_null());
  EXPECT_TRUE(json["mean_time_to_repair_seconds"].is_null());
  EXPECT_TRUE(json["exit_code"].is_null());
  EXPECT_THAT(SummaryLines(summary), IsEmpty());
  EXPECT_EQ(ParseSummary(WriteJson(json)).value(), summary);
}

TEST(RunSummaryTest, NamesTheSlowestRank) {
  RunSummary summary = SampleRun();
  EXPECT_TRUE(SummaryJson(summary)["slowest"].is_null());
  summary.slowest = {{"text", "trainer rep_1 was the\nslowest rank"}, {"instance", "rep_1"}};
  EXPECT_EQ(ParseSummary(WriteJson(SummaryJson(summary))).value(), summary);
  EXPECT_EQ(SummaryLines(summary).at(2), "trainer rep_1 was the slowest rank");
  EXPECT_THAT(SummaryTable("a.json", summary), HasSubstr("\n\ntrainer rep_1 was the slowest rank\n\n"));
  summary.slowest = {{"text", 7}};
  EXPECT_EQ(SummaryLines(summary).size(), 2U);
}

TEST(RunSummaryTest, UnknownMembersAreIgnored) {
  const auto read = ParseSummary(With("stragglers", Json::array({1, 2})));
  ASSERT_TRUE(read.ok()) << read.error();
  EXPECT_EQ(read.value(), SampleRun());
}

TEST(RunSummaryTest, DeathsOfUnknownFormAreCountedAndNotPrinted) {
  RunSummary other = SampleRun();
  other.deaths = Json::array({1, Json::object(), {{"text", 777}}});
  EXPECT_THAT(SummaryTable("a.json", other), ::testing::Not(HasSubstr("777")));
  EXPECT_THAT(CompareTable("a.json", SampleRun(), "b.json", other), ::testing::ContainsRegex("deaths +1 +3 +[+]2\n"));
}

TEST(RunSummaryTest, BadFilesAreRefusedWithTheirText) {
  EXPECT_EQ(ErrorOf(With("deaths", "none")), "has no usable \"deaths\", which must be an array");
  EXPECT_EQ(ErrorOf("<html>"), "is no JSON; it begins with \"<html>\"");
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("has no object at the top"));
  EXPECT_EQ(ErrorOf("{}"), "is no summary of a run: its \"format\" is \"\", not \"persia-metrics-run\"");
  EXPECT_THAT(ErrorOf(With("version", 2)), HasSubstr("has version 2 of the format; this program reads version 1"));
  EXPECT_THAT(ErrorOf(With("seconds", "x")), HasSubstr("\"seconds\", which must be a number"));
  EXPECT_THAT(ErrorOf(With("job", 5)), HasSubstr("\"job\", which must be a string"));
  EXPECT_THAT(ErrorOf(With("ranks", 5)), HasSubstr("\"ranks\", which must be an array"));
  EXPECT_THAT(ErrorOf(With("ranks", Json::array({5}))), HasSubstr("\"ranks[0]\", which must be an object"));
  EXPECT_THAT(ErrorOf(With("ranks", Json::array({Json::object()}))),
              HasSubstr("\"ranks[0].bucket_seconds\", which must be an object"));
  Json rank = SummaryJson(SampleRun())["ranks"][0];
  rank["restarts"] = -1;
  EXPECT_THAT(ErrorOf(With("ranks", Json::array({rank}))), HasSubstr("\"ranks[0].restarts\", which must be a count"));
}

TEST(SummaryTextTest, TheLogHasTwoLines) {
  EXPECT_THAT(
      SummaryLines(SampleRun()),
      ElementsAre("goodput 83.3 %, 2 ranks, 2 restarts, 12 steps redone, mean time to repair 6 min 40 s",
                  "time of the ranks that mark phases 1 h 00 min: compute 50 min 00 s (83.3 %), down 10 min 00 s (16.7 %); "
                  "of the others 1 h 00 min"));
  RunSummary all = SampleRun();
  all.goodput.ranks.pop_back();
  EXPECT_THAT(SummaryLines(all)[1], ::testing::StartsWith("time of all ranks 1 h 00 min: compute 50 min 00 s (83.3 %), "));
}

TEST(SummaryTextTest, UnknownRedoneStepsAreNoNumber) {
  RunSummary summary = SampleRun();
  summary.goodput.ranks[0].redone_steps.reset();
  EXPECT_THAT(SummaryLines(summary)[0], HasSubstr("2 restarts, redone steps unknown, mean time"));
  EXPECT_THAT(SummaryTable("a.json", summary), ::testing::ContainsRegex("redone steps +unknown\n"));
  EXPECT_THAT(CompareTable("a.json", summary, "b.json", SampleRun()), ::testing::ContainsRegex("redone steps +unknown +12\n"));
  EXPECT_TRUE(SummaryJson(summary)["redone_steps"].is_null());
  EXPECT_EQ(ParseSummary(WriteJson(SummaryJson(summary))).value(), summary);
}

TEST(SummaryTextTest, WithoutPhasesItSaysWhatIsNotKnown) {
  RunSummary summary = SampleRun();
  EXPECT_THAT(SummaryTable("a.json", summary), ::testing::Not(HasSubstr("not known")));
  summary.goodput.ranks.erase(summary.goodput.ranks.begin());
  EXPECT_THAT(
      SummaryTable("a.json", summary),
      HasSubstr("\nNo rank marks phases: goodput, and what the ranks did in the time that is unmarked, are not known.\n"));
}

TEST(SummaryTextTest, TheTableHasARowForEachRank) {
  EXPECT_EQ(SummaryTable("a.json", SampleRun()),
            "                                  a.json\n"
            "job                                 dlrm\n"
            "run                                 3f2a\n"
            "exit code                              0\n"
            "duration                      1 h 00 min\n"
            "ranks                                  2\n"
            "goodput                           83.3 %\n"
            "restarts                               2\n"
            "deaths                                 1\n"
            "redone steps                          12\n"
            "mean time to repair           6 min 40 s\n"
            "time of all ranks             2 h 00 min\n"
            "  compute            50 min 00 s  83.3 %\n"
            "  down               10 min 00 s  16.7 %\n"
            "  without phases              1 h 00 min\n"
            "\n"
            "rank                 time  compute    down  unmarked  restarts  redone steps\n"
            "trainer rep_0  1 h 00 min   83.3 %  16.7 %     0.0 %         2            12\n"
            "server rep_1   1 h 00 min    0.0 %   0.0 %   100.0 %         0             0\n"
            "\n"
            "1970-01-01 00:00:01 UTC: trainer rep_1 died: SIGKILL\n"
            "  the kernel's log of the host\n");
}

TEST(SummaryTextTest, AComparisonHasTheDifferences) {
  RunSummary after = SampleRun();
  after.goodput.ranks[0].time[static_cast<size_t>(Bucket::kDown)] = seconds(0);
  after.goodput.ranks[0].restarts = 0;
  after.seconds = 3005;
  const std::string text = CompareTable("a.json", SampleRun(), "b.json", after);
  EXPECT_THAT(text, HasSubstr("\ngoodput                           83.3 %              100.0 %  +16.7 points\n"));
  EXPECT_THAT(text, HasSubstr("\nrestarts                               2                    0            -2\n"));
  EXPECT_THAT(text, HasSubstr("\n  down               10 min 00 s  16.7 %          0 s   0.0 %  -10 min 00 s\n"));
  EXPECT_THAT(text, HasSubstr("\nmean time to repair           6 min 40 s                    -\n"));
}

TEST(SummaryTextTest, DurationsAreShort) {
  EXPECT_EQ(DurationText(0), "0 s");
  EXPECT_EQ(DurationText(-3), "0 s");
  EXPECT_EQ(DurationText(59.94), "59.9 s");
  EXPECT_EQ(DurationText(61), "1 min 01 s");
  EXPECT_EQ(DurationText(3599.6), "1 h 00 min");
  EXPECT_EQ(DurationText(1e300), "277777777777 h 46 min");
}

}  // namespace
}  // namespace persia::agent
