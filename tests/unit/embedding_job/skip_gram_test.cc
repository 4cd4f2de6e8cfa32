#include "skip_gram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "batch_maker.h"
#include "embedding_table.h"
#include "lookup_plan.h"
#include "random.h"

namespace embedding_job {
namespace {

constexpr uint32_t kSkipGramDimension = 8;

class SkipGramTest : public testing::Test {
 protected:
  SkipGramTest() : model_(kSkipGramDimension, 0.1F) {
    Random random(3);
    const auto fill = [&](std::vector<float>& values) {
      for (float& value : values) {
        value = static_cast<float>(random.Share() - 0.5);
      }
    };
    fill(model_.projection());
    model_.bias() = 0.3F;
    batch_.dimension = kSkipGramDimension;
    batch_.rows[kCenter].resize(3 * kSkipGramDimension);
    batch_.rows[kContext].resize(5 * kSkipGramDimension);
    fill(batch_.rows[kCenter]);
    fill(batch_.rows[kContext]);
    batch_.pairs = {.offsets = {0, 3, 3, 7}, .contexts = {0, 1, 4, 2, 3, 3, 1}, .first_negative = 3};
  }

  // (loss(value + h) - loss(value - h)) / 2h, against the model's gradient.
  void ExpectDerivative(float& value, float derivative) {
    constexpr float kStep = 1e-2F;
    const float before = value;
    value = before + kStep;
    const double above = model_.Derive(batch_).loss;
    value = before - kStep;
    const double below = model_.Derive(batch_).loss;
    value = before;
    EXPECT_NEAR((above - below) / (2 * kStep), derivative, 1e-3);
  }

  SkipGram model_;
  EmbeddingBatch batch_;
};

TEST_F(SkipGramTest, LossIsTheCrossEntropyOfAllPairs) {
  double expected = 0;
  for (size_t row = 0; row < 3; ++row) {
    for (uint32_t pair = batch_.pairs.offsets[row]; pair < batch_.pairs.offsets[row + 1]; ++pair) {
      const uint32_t context = batch_.pairs.contexts[pair];
      double score = model_.bias();
      for (size_t i = 0; i < kSkipGramDimension; ++i) {
        for (size_t j = 0; j < kSkipGramDimension; ++j) {
          score += double{model_.projection()[i * kSkipGramDimension + j]} *
                   batch_.rows[kCenter][row * kSkipGramDimension + j] * batch_.rows[kContext][context * kSkipGramDimension + i];
        }
      }
      expected += std::log1p(std::exp(context < 3 ? -score : score));
    }
  }
  EXPECT_NEAR(model_.Derive(batch_).loss, expected, 1e-4);
}

TEST_F(SkipGramTest, LossOfExtremeScoresIsFinite) {
  for (const float bias : {-300.0F, 300.0F}) {
    model_.bias() = bias;
    const SkipGram::Gradients gradients = model_.Derive(batch_);
    // 4 neighbours, 3 others: one kind is right, with a loss of 0; each of the other kind has its score as loss.
    EXPECT_NEAR(gradients.loss, 300 * (bias < 0 ? 4 : 3), 10);
    for (const float value : gradients.rows[kCenter]) {
      EXPECT_TRUE(std::isfinite(value));
    }
  }
}

TEST_F(SkipGramTest, GradientsOfEmbeddingsAreDerivatives) {
  const SkipGram::Gradients gradients = model_.Derive(batch_);
  for (size_t feature = 0; feature < kFeatures; ++feature) {
    ASSERT_EQ(gradients.rows[feature].size(), batch_.rows[feature].size());
    for (size_t i = 0; i < batch_.rows[feature].size(); ++i) {
      ExpectDerivative(batch_.rows[feature][i], gradients.rows[feature][i]);
    }
  }
}

TEST_F(SkipGramTest, GradientsOfTheDensePartAreDerivatives) {
  const SkipGram::Gradients gradients = model_.Derive(batch_);
  ASSERT_EQ(gradients.projection.size(), model_.projection().size());
  for (size_t i = 0; i < gradients.projection.size(); ++i) {
    ExpectDerivative(model_.projection()[i], gradients.projection[i]);
  }
  ExpectDerivative(model_.bias(), gradients.bias);
}

TEST_F(SkipGramTest, ApplyLowersTheLoss) {
  const SkipGram::Gradients gradients = model_.Derive(batch_);
  model_.Apply(gradients);
  EXPECT_LT(model_.Derive(batch_).loss, gradients.loss);
}

// All parts of the arithmetic together, as the roles do it, in one thread: text in which words come in pairs.
TEST(Training, LossFallsBelowWhatWordFrequenciesExplain) {
  std::unordered_map<std::string, uint64_t> counts;
  std::vector<std::string> names;
  for (char c = 'a'; c <= 't'; ++c) {
    names.emplace_back(3, c);
    counts[names.back()] = 1000;
  }
  Corpus corpus{Vocabulary(counts), {}, 1};
  Random random(1);
  for (int i = 0; i < 5000; ++i) {
    const uint32_t pair = random.Below(10) * 2;
    for (int word = 0; word < 4; ++word) {
      corpus.words.push_back(corpus.vocabulary.Find(names[pair + random.Below(2)]));
    }
  }
  BatchMaker maker(corpus, {.batch_words = 256, .epochs = 5, .window = 2, .negatives = 4, .seed = 1});
  EmbeddingTable table({.dimension = 16});
  SkipGram model(16, 0.05F);
  std::vector<double> losses;
  while (std::optional<Batch> batch = maker.Next()) {
    const LookupPlan plan(batch->features, 1, 16);
    std::vector<std::vector<float>> rows(1);
    rows[0].resize(plan.ids_of_server()[0].size() * 16);
    table.Lookup(plan.ids_of_server()[0], rows[0].data());
    const EmbeddingBatch embeddings{
        .progress = {}, .dimension = 16, .rows = {plan.Sum(kCenter, rows), plan.Sum(kContext, rows)}, .pairs = batch->pairs};
    const SkipGram::Gradients gradients = model.Derive(embeddings);
    losses.push_back(gradients.loss / static_cast<double>(embeddings.pairs.contexts.size()));
    model.Apply(gradients);
    auto scattered = plan.EmptyGradients();
    for (size_t f = 0; f < kFeatures; ++f) {
      plan.Scatter(f, gradients.rows[f], scattered);
    }
    EXPECT_EQ(table.Update(plan.ids_of_server()[0], scattered[0].data()), 0U);
  }
  EXPECT_NEAR(losses.front(), std::log(2), 0.01);
  // One pair in five is of neighbours; a model that knows only that has a loss of 0.5004.
  EXPECT_LT(losses.back(), 0.42);
}

}  // namespace
}  // namespace embedding_job
