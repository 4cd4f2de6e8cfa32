#include "ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "job_error.h"
#include "persia/metrics/timer.h"

namespace embedding_job {
namespace {

namespace catalog = persia::metrics::catalog;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Ledger, KeepsWhatItsInstrumentsCounted) {
  Ledger ledger("embedding_server", 1);
  TalliedCounter misses = ledger.Add(catalog::kIndexMissCount, catalog::IndexMissCount());
  TalliedGauge ratio = ledger.Add(catalog::kIndexMissRatio, catalog::IndexMissRatio());
  TalliedTimeCost cost = ledger.Add(catalog::kLookupMixedBatchTimeCost, catalog::LookupMixedBatchTimeCost());
  misses.Increment(3);
  misses.Increment();
  ratio.Set(0.5);
  ratio.Set(0.25);
  cost.Observe(0.5);
  cost.Observe(2);
  EXPECT_THAT(
      ledger.Part("").metrics,
      ElementsAre(R"({"role":"embedding_server","replica":1,"group":"persia","name":"index_miss_count","type":"counter",)"
                  R"("labels":{},"value":4})",
                  R"({"role":"embedding_server","replica":1,"group":"persia","name":"index_miss_ratio","type":"gauge",)"
                  R"("labels":{},"value":0.25})",
                  R"({"role":"embedding_server","replica":1,"group":"persia","name":"lookup_mixed_batch_time_cost",)"
                  R"("type":"time_cost","labels":{},"count":2,"last":2,"sum":2.5})"));
}

TEST(Ledger, NamesLabels) {
  Ledger ledger("embedding_worker", 0);
  ledger.Add(catalog::kNanCount, catalog::NanCount().With({{"feat", "center"}}), "center");
  EXPECT_THAT(ledger.Part("").metrics, ElementsAre(HasSubstr(R"("labels":{"feat":"center"},"value":0})")));
}

TEST(Ledger, WhatWasNeverSetIsNull) {
  Ledger ledger("embedding_worker", 0);
  ledger.Add(catalog::kStaleness, catalog::Staleness());
  ledger.Add(catalog::kLookupRpcTimeCost, catalog::LookupRpcTimeCost());
  EXPECT_THAT(ledger.Part("").metrics,
              ElementsAre(HasSubstr(R"("value":null})"), HasSubstr(R"("count":0,"last":null,"sum":0})")));
}

TEST(Ledger, KeepsOtherGroupsApart) {
  Ledger ledger("trainer", 0);
  ledger.NewCounter("embedding_job", "batches", {}).Increment(2);
  ledger.NewHistogram("embedding_job", "step_time", {}).Observe(1);
  const ReportPart part = ledger.Part("\"batches\":2");
  EXPECT_TRUE(part.metrics.empty());
  EXPECT_EQ(part.job_fields, "\"batches\":2");
  EXPECT_THAT(part.own_metrics,
              ElementsAre(HasSubstr(R"("group":"embedding_job","name":"batches","type":"counter","labels":{},"value":2})"),
                          HasSubstr(R"("name":"step_time","type":"histogram","labels":{},"count":1,"last":1,"sum":1})")));
}

TEST(Ledger, CountsExactlyFromManyThreads) {
  Ledger ledger("embedding_server", 0);
  TalliedCounter counter = ledger.NewCounter("ledger_test", "many", {});
  TalliedTimeCost cost = ledger.Add(catalog::kLookupRpcTimeCost, catalog::LookupRpcTimeCost());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, counter, cost]() mutable {
      for (int i = 0; i < 10'000; ++i) {
        counter.Increment();
        const persia::metrics::ScopedTimer timer(cost);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(ledger.Part("").own_metrics, ElementsAre(HasSubstr("\"value\":40000}")));
  EXPECT_THAT(ledger.Part("").metrics, ElementsAre(HasSubstr("\"count\":40000,")));
}

class ReportFiles : public testing::Test {
 protected:
  ReportFiles() : path_(testing::TempDir() + "ledger_test." + std::to_string(getpid())) {}
  ~ReportFiles() override { std::filesystem::remove(path_); }

  std::string Read() {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  std::string Refusal() {
    try {
      ReadReportPart(path_);
    } catch (const JobError& error) {
      return error.what();
    }
    return "accepted";
  }
  const std::filesystem::path path_;
};

TEST_F(ReportFiles, PartsAreReadAsWritten) {
  WriteReportPart(path_, {.metrics = {"{1}", "{2}"}, .own_metrics = {"{3}"}, .job_fields = "\"batches\":3"});
  const ReportPart part = ReadReportPart(path_);
  EXPECT_THAT(part.metrics, ElementsAre("{1}", "{2}"));
  EXPECT_THAT(part.own_metrics, ElementsAre("{3}"));
  EXPECT_EQ(part.job_fields, "\"batches\":3");
}

TEST_F(ReportFiles, ReportsHoldAllParts) {
  WriteReport(path_, {{.metrics = {"{\"a\":1}"}, .own_metrics = {}, .job_fields = ""},
                      {.metrics = {"{\"b\":2}"}, .own_metrics = {"{\"c\":3}"}, .job_fields = "\"batches\":3"}});
  EXPECT_EQ(Read(), "{\"metrics\":[\n{\"a\":1},\n{\"b\":2}],\n\"own_metrics\":[\n{\"c\":3}],\n\"batches\":3}\n");
}

TEST_F(ReportFiles, APartThatIsNotWholeIsRefused) {
  EXPECT_THAT(Refusal(), HasSubstr("missing or incomplete"));
  WriteReportPart(path_, {.metrics = {"{1}"}, .own_metrics = {}, .job_fields = ""});
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 2);
  EXPECT_NE(Refusal(), "accepted");
  std::ofstream(path_) << "metric {1}\nnonsense\nend\n";
  EXPECT_THAT(Refusal(), HasSubstr("\"nonsense\""));
}

TEST(Json, TextIsQuoted) {
  EXPECT_EQ(JsonText("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
  EXPECT_EQ(JsonText("größe"), "\"größe\"");
}

TEST(Json, NumbersReadBackTheSame) {
  EXPECT_EQ(JsonNumber(0.1), "0.1");
  EXPECT_EQ(JsonNumber(1e300), "1e+300");
  EXPECT_EQ(JsonNumber(NAN), "null");
  EXPECT_EQ(JsonNumber(INFINITY), "null");
}

}  // namespace
}  // namespace embedding_job
