// Lost values: each sentence, and the snapshot in which it is true.
#include "web/losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Sentences = std::vector<std::string>;

Identity RankIdentity(int number) { return {"dlrm", {{"instance", "rep_" + std::to_string(number)}, {"role", "trainer"}}}; }
const Identity kAgentsOwn{"dlrm", {{"instance", "host"}, {"role", "agent"}}};

// A snapshot of counters and gauges, each added by its name. REQUIRES: families are added in the order of their names.
struct Values {
  Layout layout;
  std::vector<double> values;

  Values& Add(const std::string& family, const Identity& identity, const Labels& labels, double value) {
    if (layout.families.empty() || layout.families.back().name != family) {
      FamilyLayout& added = layout.families.emplace_back();
      added.name = family;
      added.type = MetricType::kCounter;
    }
    const auto known = std::ranges::find(layout.identities, identity);
    const auto index = static_cast<uint32_t>(known - layout.identities.begin());
    if (known == layout.identities.end()) layout.identities.push_back(identity);
    layout.families.back().series.push_back({.identity = index, .first_value = values.size(), .labels = labels});
    values.push_back(value);
    return *this;
  }
  Values& Dropped(const std::string& reason, int rank, double value) {
    return Add("persia_metrics_dropped_total", RankIdentity(rank), {{"reason", reason}}, value);
  }
  Values& Lost(const std::string& metric, const std::string& reason, int rank, double value) {
    return Add("persia_metrics_lost_total", RankIdentity(rank), {{"metric", metric}, {"reason", reason}}, value);
  }
  Values& LeftOut(std::vector<uint32_t> identities) {
    layout.left_out = {{"train/loss", "train_loss", "a gauge", "a counter", std::move(identities)}};
    return *this;
  }
  [[nodiscard]] Sentences Texts() const {
    Sentences texts;
    for (const auto& loss : LossesIn({std::make_shared<const Layout>(layout), values, {}})) texts.push_back(loss.text);
    return texts;
  }
};

constexpr char kBadValue[] = "a counter takes no NaN and no negative number, a histogram no NaN; a gauge takes both";
constexpr char kConflict[] = "its process has it with another type, merge policy or bounds; give it one, or another name";
constexpr char kBadName[] =
    "a name has 1 to 256 bytes, a label's value at most 4096, and a metric at most 32 labels, each once; correct the call";

TEST(LossesIn, NamesTheMetricItsRanksAndWhatToDo) {
  const std::string bad_value = std::string(": ") + kBadValue;
  const std::vector<std::pair<Values, Sentences>> table = {
      {Values(), {}},
      {Values().Dropped("bad_value", 3, 0), {}},
      {Values().Dropped("bad_value", 3, 1).Lost("train/loss", "bad_value", 3, 1),
       {"1 value of train/loss lost on trainer rep_3" + bad_value}},
      {Values().Dropped("bad_value", 3, 3).Lost("train/loss", "bad_value", 3, 3),
       {"3 values of train/loss lost on trainer rep_3" + bad_value}},
      {Values()
           .Dropped("bad_value", 0, 2)
           .Dropped("bad_value", 1, 2)
           .Lost("loss", "bad_value", 0, 2)
           .Lost("loss", "bad_value", 1, 2),
       {"4 values of loss lost in 2 ranks" + bad_value}},
      // Of an earlier library, or beyond the space of the segment, no metric is named.
      {Values().Dropped("bad_value", 3, 5).Lost("train/loss", "bad_value", 3, 3),
       {"3 values of train/loss lost on trainer rep_3" + bad_value, "2 values lost on trainer rep_3" + bad_value}},
      {Values().Dropped("type_conflict", 0, 2).Lost("train/loss", "type_conflict", 0, 2),
       {std::string("2 requests for train/loss refused on trainer rep_0: ") + kConflict}},
      {Values().Dropped("bad_name", 0, 1).Dropped("bad_name", 1, 1),
       {std::string("2 requests refused in 2 ranks: ") + kBadName}},
      {Values().Dropped("filesystem_full", 0, 1), {}},  // exported later
      {Values().Add("persia_agent_dropped_series", kAgentsOwn, {{"reason", "max_series"}}, 120),
       {"120 series left out: the job has more than max_series; use fewer label values"}},
      {Values().Add("persia_agent_dropped_series", kAgentsOwn, {{"reason", "max_series_per_instance"}}, 7),
       {"7 series left out: an instance has more than max_series_per_instance; use fewer label values"}},
      {Values().Add("persia_agent_dropped_series", kAgentsOwn, {{"reason", "label_value_bytes"}}, 7),
       {"7 series left out: a label's value is longer than 1,024 bytes; shorten it"}},
      {Values().Add("persia_agent_dropped_series", kAgentsOwn, {{"reason", "families"}}, 7),
       {"7 series left out: the job has more than 20,000 metrics; use labels instead of names"}},
      {Values().Add("persia_agent_dropped_series", kAgentsOwn, {{"reason", "push_bytes"}}, 7),
       {"7 series left out of pushes: a group is larger than 64 MiB, or than a proxy before the gateway takes; give its "
        "metrics fewer label values"}},
      {Values().Add("persia_agent_quarantined_series", kAgentsOwn, {{"reason", "gateway"}}, 7),
       {"7 series left out of pushes: the gateway refuses them, mostly since another job has the name with another type; the "
        "log names them"}},
      {Values().Add("persia_agent_quarantined_series", kAgentsOwn, {{"reason", "collision"}}, 7),
       {"7 series left out: another series has the same name and labels; rename a label"}},
      {Values().Dropped("bad_bounds", 0, 1),
       {"1 request refused on trainer rep_0: a histogram has 1 to 500 ascending, finite bounds; correct them"}},
      {Values().Dropped("segment_full", 0, 1),
       {"1 request refused on trainer rep_0: the segment of the process is full; use fewer label values, or raise "
        "PERSIA_METRICS_SEGMENT_BYTES"}},
      {Values().Dropped("out_of_memory", 0, 1), {"1 value lost on trainer rep_0: the process had no memory left"}},
      {Values().Add("persia_agent_fifo_lines_total", kAgentsOwn, {{"result", "bad"}}, 1),
       {"1 line of emit lost: not in the format of emit; the log says why"}},
  };
  for (size_t i = 0; i < table.size(); ++i) EXPECT_EQ(table[i].first.Texts(), table[i].second) << "row " << i;
}

TEST(LossesIn, SixtyFourRanksAreOneSentence) {
  Values all;
  for (int rank = 0; rank < 64; ++rank) all.Dropped("bad_value", rank, 2);
  for (int rank = 0; rank < 64; ++rank) all.Lost("train/loss", "bad_value", rank, 2);
  EXPECT_THAT(all.Texts(), ElementsAre(std::string("128 values of train/loss lost in 64 ranks: ") + kBadValue));
}

TEST(LossesIn, AMetricOfTwoTypesIsNamedAsInTheProgramAndAsItIsExported) {
  constexpr char kEnd[] = ": it is a gauge there, and the newest train_loss is a counter; give it one type, or another name";
  Values some = Values().Dropped("bad_value", 0, 0).Dropped("bad_value", 1, 0).Dropped("bad_value", 2, 0);
  EXPECT_THAT(some.LeftOut({1}).Texts(), ElementsAre(std::string("train/loss (train_loss) left out on trainer rep_1") + kEnd));
  EXPECT_THAT(some.LeftOut({1, 2}).Texts(), ElementsAre(std::string("train/loss (train_loss) left out in 2 ranks") + kEnd));
}

TEST(LossesIn, AreLimited) {
  Values many;
  for (int i = 0; i < 100; ++i) many.Lost("m" + std::to_string(i), "bad_value", 0, 1);
  EXPECT_THAT(many.Texts(), SizeIs(HealthReport::kMaxReasons));
}

TEST(LossesIn, AreAtTheirRankIfItIsOne) {
  const auto losses = [](const Values& all) { return LossesIn({std::make_shared<const Layout>(all.layout), all.values, {}}); };
  EXPECT_EQ(losses(Values().Dropped("bad_name", 3, 1)).at(0).worker, WorkerKey("trainer", "rep_3", "0"));
  EXPECT_EQ(losses(Values().Dropped("bad_name", 3, 1)).at(0).kind, "lost");
  EXPECT_EQ(losses(Values().Dropped("bad_name", 3, 1).Dropped("bad_name", 4, 1)).at(0).worker, std::nullopt);
}

}  // namespace
}  // namespace persia::agent
