#include "exposure/identities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace persia::agent {
namespace {

const Identity kTrainer{"job", {{"instance", "rep_0"}, {"role", "trainer"}}};

Labels Fitted(Labels labels, MetricType type = MetricType::kGauge) {
  const Labels before = labels;
  const bool changed = FitLabels(labels, type, kTrainer);
  EXPECT_EQ(changed, labels != before);
  return labels;
}

TEST(LabelsTest, ALabelOfTheIdentityIsRenamed) {
  EXPECT_EQ(Fitted({{"job", "mine"}, {"role", "boss"}, {"zone", "a"}}),
            (Labels{{"exported_job", "mine"}, {"exported_role", "boss"}, {"zone", "a"}}));
}

TEST(LabelsTest, ARenamedLabelDoesNotDisplaceAnother) {
  EXPECT_EQ(Fitted({{"exported_job", "theirs"}, {"job", "mine"}}),
            (Labels{{"exported_exported_job", "mine"}, {"exported_job", "theirs"}}));
}

TEST(LabelsTest, ATypesLabelIsReservedForThatTypeAlone) {
  const Labels labels{{"le", "1"}, {"quantile", "2"}};
  EXPECT_EQ(Fitted(labels, MetricType::kGauge), labels);
  EXPECT_EQ(Fitted(labels, MetricType::kHistogram), (Labels{{"exported_le", "1"}, {"quantile", "2"}}));
  EXPECT_EQ(Fitted(labels, MetricType::kSummary), (Labels{{"exported_quantile", "2"}, {"le", "1"}}));
}

TEST(LabelsTest, AnEmptyLabelIsRemoved) { EXPECT_EQ(Fitted({{"a", ""}, {"b", "1"}}), (Labels{{"b", "1"}})); }

TEST(LabelsTest, SettingALabelRenamesTheExistingOne) {
  Labels labels{{"a", "1"}, {"exported_process", "2"}, {"process", "3"}};
  SetLabel(labels, "process", "0");
  EXPECT_EQ(labels, (Labels{{"a", "1"}, {"exported_exported_process", "3"}, {"exported_process", "2"}, {"process", "0"}}));
}

}  // namespace
}  // namespace persia::agent
