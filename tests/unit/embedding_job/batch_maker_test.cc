#include "batch_maker.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace embedding_job {
namespace {

// Some words, each many times.
class BatchMakerTest : public testing::Test {
 protected:
  static constexpr size_t kWords = 1000;

  BatchMakerTest() : corpus_{Vocabulary({{"aa", 300}, {"bb", 200}, {"cc", 100}, {"dd", 50}}), {}, 1} {
    for (uint32_t i = 0; i < kWords; ++i) {
      corpus_.words.push_back(i * i % 4);
    }
  }

  std::vector<Batch> All(const BatchMaker::Options& options) {
    BatchMaker maker(corpus_, options);
    std::vector<Batch> batches;
    while (std::optional<Batch> batch = maker.Next()) {
      batches.push_back(std::move(*batch));
    }
    return batches;
  }

  Corpus corpus_;
};

TEST_F(BatchMakerTest, AnEpochTakesEachWordOnceAsACentre) {
  std::map<uint64_t, size_t> centres;
  for (const Batch& batch : All({.batch_words = 128, .epochs = 1})) {
    const Bags& bags = batch.features[kCenter];
    for (size_t row = 0; row < bags.rows(); ++row) {
      ++centres[bags.ids[bags.offsets[row]]];
    }
  }
  std::map<uint64_t, size_t> expected;
  for (const uint32_t word : corpus_.words) {
    ++expected[corpus_.vocabulary.id(word)];
  }
  EXPECT_EQ(centres, expected);
}

TEST_F(BatchMakerTest, BatchesHoldAtMostTheirWords) {
  for (const uint32_t size : {1U, 63U, 64U, 100U, 500U, 5000U}) {
    for (const Batch& batch : All({.batch_words = size, .epochs = 1})) {
      EXPECT_LE(batch.features[kCenter].rows(), size);
      EXPECT_GT(batch.features[kCenter].rows(), 0U);
    }
  }
}

TEST_F(BatchMakerTest, NumbersBatchesAndEpochs) {
  const std::vector<Batch> batches = All({.batch_words = 256, .epochs = 3});
  ASSERT_EQ(batches.size(), 12U);
  for (size_t i = 0; i < batches.size(); ++i) {
    EXPECT_EQ(batches[i].progress.batch, i);
    EXPECT_EQ(batches[i].progress.epoch, i / 4);
    EXPECT_EQ(batches[i].progress.ends_epoch, i % 4 == 3 ? 1 : 0);
  }
}

TEST_F(BatchMakerTest, TellsWhatShareIsDone) {
  BatchMaker maker(corpus_, {.batch_words = 256, .epochs = 2});
  EXPECT_EQ(maker.ShareDone(), 0);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(maker.Next());
  }
  EXPECT_DOUBLE_EQ(maker.ShareDone(), 0.5);
}

// Within one passage, row r's neighbours are the rows around it.
TEST_F(BatchMakerTest, NeighboursStandWithinTheWindow) {
  std::map<uint32_t, int> at_distance;
  for (const Batch& batch : All({.batch_words = 64, .epochs = 1, .window = 3, .negatives = 2})) {
    const Pairs& pairs = batch.pairs;
    EXPECT_EQ(pairs.first_negative, batch.features[kCenter].rows());
    for (uint32_t row = 0; row + 1 < pairs.offsets.size(); ++row) {
      uint32_t near = 0;
      uint32_t drawn = 0;
      for (uint32_t pair = pairs.offsets[row]; pair < pairs.offsets[row + 1]; ++pair) {
        if (pairs.contexts[pair] >= pairs.first_negative) {
          ++drawn;
          continue;
        }
        ++near;
        const uint32_t other = pairs.contexts[pair];
        EXPECT_NE(other, row);
        ++at_distance[other > row ? other - row : row - other];
      }
      EXPECT_EQ(drawn, 2 * near);
    }
  }
  ASSERT_EQ(at_distance.size(), 3U);
  EXPECT_EQ(at_distance.rbegin()->first, 3U);
  EXPECT_GT(at_distance[1], at_distance[2]);
  EXPECT_GT(at_distance[2], at_distance[3]);
}

TEST_F(BatchMakerTest, DrawsFrequentWordsMoreOftenButLessThanTheyOccur) {
  std::map<uint64_t, double> drawn;
  for (const Batch& batch : All({.batch_words = 512, .epochs = 50})) {
    const Bags& contexts = batch.features[kContext];
    for (size_t row = batch.pairs.first_negative; row < contexts.rows(); ++row) {
      ++drawn[contexts.ids[row]];
    }
  }
  const double ratio = drawn[corpus_.vocabulary.id(0)] / drawn[corpus_.vocabulary.id(3)];
  EXPECT_NEAR(ratio, 3.83, 0.3);  // (300 / 50) ^ 0.75
}

TEST_F(BatchMakerTest, TheSeedDecides) {
  const auto ids = [&](uint64_t seed) {
    return All({.batch_words = 512, .epochs = 1, .seed = seed})[0].features[kContext].ids;
  };
  EXPECT_EQ(ids(1), ids(1));
  EXPECT_NE(ids(1), ids(2));
}

}  // namespace
}  // namespace embedding_job
