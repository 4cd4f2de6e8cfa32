// The dense part of the model, in the trainer: a projection of the centre word and a bias.
//
//   score(center, context) = (projection * center) . context + bias
//
// The loss of a pair is the cross-entropy of sigmoid(score) with 1 for neighbours and 0 for random words. Thread safety: one
// thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "messages.h"

namespace embedding_job {

class SkipGram {
 public:
  // REQUIRES: dimension is a multiple of 4.
  SkipGram(uint32_t dimension, float learning_rate);

  struct Gradients {
    std::array<std::vector<float>, kFeatures> rows;  // of the batch's embeddings
    std::vector<float> projection;                   // row by row
    float bias = 0;
    double loss = 0;  // the sum over all pairs
  };
  // The loss of a batch, and its derivatives. REQUIRES: the batch has this dimension.
  [[nodiscard]] Gradients Derive(const EmbeddingBatch& batch) const;
  // Moves projection and bias against their gradients, by Adagrad.
  void Apply(const Gradients& gradients);

  [[nodiscard]] std::vector<float>& projection() { return projection_; }
  [[nodiscard]] float& bias() { return bias_; }

 private:
  const uint32_t dimension_;
  const float learning_rate_;
  std::vector<float> projection_;
  std::vector<float> projection_squares_;
  float bias_ = 0;
  float bias_squares_ = 0;
};

}  // namespace embedding_job
