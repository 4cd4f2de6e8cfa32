#include "lookup_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "random.h"

namespace embedding_job {
namespace {

constexpr uint32_t kPlanDimension = 4;

class LookupPlanTest : public testing::Test {
 protected:
  // Random bags over few ids, so that there are many duplicates.
  static std::array<Bags, kFeatures> RandomFeatures(uint64_t seed) {
    Random random(seed);
    std::array<Bags, kFeatures> features;
    for (Bags& bags : features) {
      for (int row = 0; row < 50; ++row) {
        for (uint32_t i = random.Below(5); i > 0; --i) {
          bags.ids.push_back(random.Below(40));
        }
        bags.offsets.push_back(static_cast<uint32_t>(bags.ids.size()));
      }
    }
    return features;
  }

  // What servers would answer whose rows are (id, id / 2, ...), where the feature's byte is left out.
  static std::vector<float> RowOf(uint64_t id) {
    const auto number = static_cast<float>(id & 0xffffffff);
    return {number, number / 2, number / 4, 1};
  }
  static std::vector<std::vector<float>> Answer(const LookupPlan& plan) {
    std::vector<std::vector<float>> answers;
    for (const std::vector<uint64_t>& ids : plan.ids_of_server()) {
      std::vector<float>& rows = answers.emplace_back();
      for (const uint64_t id : ids) {
        const std::vector<float> row = RowOf(id);
        rows.insert(rows.end(), row.begin(), row.end());
      }
    }
    return answers;
  }
};

TEST_F(LookupPlanTest, AsksForEachIdOnce) {
  const LookupPlan plan(RandomFeatures(1), 3, kPlanDimension);
  std::set<uint64_t> asked;
  size_t count = 0;
  for (const std::vector<uint64_t>& ids : plan.ids_of_server()) {
    asked.insert(ids.begin(), ids.end());
    count += ids.size();
    EXPECT_FALSE(ids.empty());
  }
  EXPECT_EQ(asked.size(), count);
  EXPECT_EQ(count, plan.distinct_count(kCenter) + plan.distinct_count(kContext));
}

TEST_F(LookupPlanTest, KeepsFeaturesApart) {
  std::array<Bags, kFeatures> features;
  for (Bags& bags : features) {
    bags.ids = {5};
    bags.offsets = {0, 1};
  }
  const LookupPlan plan(features, 1, kPlanDimension);
  ASSERT_EQ(plan.ids_of_server()[0].size(), 2U);
  EXPECT_NE(plan.ids_of_server()[0][0], plan.ids_of_server()[0][1]);
  EXPECT_NE(plan.distinct_ids(kCenter), plan.distinct_ids(kContext));
}

TEST_F(LookupPlanTest, CountsIdsWithAndWithoutDuplicates) {
  const auto features = RandomFeatures(2);
  const LookupPlan plan(features, 2, kPlanDimension);
  for (size_t f = 0; f < kFeatures; ++f) {
    EXPECT_EQ(plan.id_count(f), features[f].ids.size());
    EXPECT_EQ(plan.distinct_count(f), std::set<uint64_t>(features[f].ids.begin(), features[f].ids.end()).size());
    EXPECT_EQ(plan.distinct_ids(f).size(), plan.distinct_count(f));
  }
}

TEST_F(LookupPlanTest, AnIdGoesToTheSameServerInEveryBatch) {
  std::map<uint64_t, size_t> server_of;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const LookupPlan plan(RandomFeatures(seed), 3, kPlanDimension);
    for (size_t server = 0; server < 3; ++server) {
      for (const uint64_t id : plan.ids_of_server()[server]) {
        EXPECT_EQ(server_of.emplace(id, server).first->second, server);
      }
    }
  }
}

TEST_F(LookupPlanTest, SumsEachBag) {
  const auto features = RandomFeatures(3);
  const LookupPlan plan(features, 3, kPlanDimension);
  for (size_t f = 0; f < kFeatures; ++f) {
    const std::vector<float> sums = plan.Sum(f, Answer(plan));
    ASSERT_EQ(sums.size(), features[f].rows() * kPlanDimension);
    for (size_t row = 0; row < features[f].rows(); ++row) {
      std::vector<float> expected(kPlanDimension);
      for (uint32_t at = features[f].offsets[row]; at < features[f].offsets[row + 1]; ++at) {
        for (size_t i = 0; i < kPlanDimension; ++i) {
          expected[i] += RowOf(features[f].ids[at])[i];
        }
      }
      EXPECT_EQ(std::vector<float>(&sums[row * kPlanDimension], &sums[row * kPlanDimension] + kPlanDimension), expected);
    }
  }
}

// The gradient of a sum goes to each of its parts, as often as it is in there.
TEST_F(LookupPlanTest, ScattersGradientsToAllIdsOfABag) {
  const auto features = RandomFeatures(4);
  const LookupPlan plan(features, 2, kPlanDimension);
  auto gradients = plan.EmptyGradients();
  std::map<uint64_t, float> expected;
  std::vector<float> rows;
  for (size_t row = 0; row < features[kCenter].rows(); ++row) {
    rows.insert(rows.end(), kPlanDimension, static_cast<float>(row));
    for (uint32_t at = features[kCenter].offsets[row]; at < features[kCenter].offsets[row + 1]; ++at) {
      expected[features[kCenter].ids[at]] += static_cast<float>(row);
    }
  }
  const LookupPlan::Rejected rejected = plan.Scatter(kCenter, rows, gradients);
  EXPECT_EQ(rejected.rows, 0U);
  EXPECT_EQ(rejected.values, 0U);
  const std::vector<uint64_t> of_center = plan.distinct_ids(kCenter);
  const std::set<uint64_t> centers(of_center.begin(), of_center.end());
  for (size_t server = 0; server < 2; ++server) {
    for (size_t i = 0; i < plan.ids_of_server()[server].size(); ++i) {
      const uint64_t id = plan.ids_of_server()[server][i];
      EXPECT_EQ(gradients[server][i * kPlanDimension + 3], centers.contains(id) ? expected[id & 0xffffffff] : 0);
    }
  }
}

TEST_F(LookupPlanTest, LeavesOutGradientsWithNanOrInfinity) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::array<Bags, kFeatures> features;
  features[kCenter].ids = {1, 1, 1, 1};
  features[kCenter].offsets = {0, 1, 2, 3, 4};
  const LookupPlan plan(features, 1, kPlanDimension);
  auto gradients = plan.EmptyGradients();
  const LookupPlan::Rejected rejected = plan.Scatter(kCenter,
                                                     {1, 1, 1, 1,                                  //
                                                      1, kNan, 1, -kInfinity,                      //
                                                      std::numeric_limits<float>::max(), 0, 0, 0,  //
                                                      1, 1, 1, kInfinity},
                                                     gradients);
  EXPECT_EQ(rejected.rows, 2U);
  EXPECT_EQ(rejected.values, 3U);
  EXPECT_EQ(gradients[0], (std::vector<float>{std::numeric_limits<float>::max(), 1, 1, 1}));
}

TEST_F(LookupPlanTest, AnEmptyBatchAsksForNothing) {
  const LookupPlan plan({}, 2, kPlanDimension);
  EXPECT_EQ(plan.ids_of_server(), std::vector<std::vector<uint64_t>>(2));
  EXPECT_TRUE(plan.Sum(kCenter, Answer(plan)).empty());
}

}  // namespace
}  // namespace embedding_job
