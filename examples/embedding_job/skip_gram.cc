#include "skip_gram.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "adagrad.h"
#include "vector_ops.h"

namespace embedding_job {
namespace {

void Adagrad(float& value, float& squares, float gradient, float learning_rate) {
  squares += gradient * gradient;
  value -= learning_rate * gradient / (std::sqrt(squares) + kAdagradEpsilon);
}

// Sums the losses of many pairs: multiplies 1 + exp(-|s|) of a few hundred pairs, and takes one logarithm of the product.
class LossSum {
 public:
  // `small` is exp(-|score|). REQUIRES: 0 <= small <= 1.
  void Add(float score, bool neighbour, float small) {
    linear_ += (score > 0) == neighbour ? 0.0F : std::abs(score);
    product_ *= 1.0 + small;
    if (product_ > 1e250) Flush();
  }
  double Total() {
    Flush();
    return total_;
  }

 private:
  void Flush() {
    total_ += std::log(product_) + linear_;
    product_ = 1;
    linear_ = 0;
  }

  double total_ = 0;
  double product_ = 1;
  double linear_ = 0;
};

}  // namespace

SkipGram::SkipGram(uint32_t dimension, float learning_rate)
    : dimension_(dimension),
      learning_rate_(learning_rate),
      projection_(size_t{dimension} * dimension),
      projection_squares_(projection_.size()) {
  for (size_t i = 0; i < dimension; ++i) projection_[i * dimension + i] = 1;
}

SkipGram::Gradients SkipGram::Derive(const EmbeddingBatch& batch) const {
  const std::vector<float>& centers = batch.rows[kCenter];
  const std::vector<float>& contexts = batch.rows[kContext];
  Gradients out;
  out.rows[kCenter].resize(centers.size());
  out.rows[kContext].resize(contexts.size());
  out.projection.resize(projection_.size());
  LossSum loss;
  std::vector<float> projected(dimension_);
  std::vector<float> projected_gradient(dimension_);
  for (size_t row = 0; row + 1 < batch.pairs.offsets.size(); ++row) {
    const float* center = centers.data() + row * dimension_;
    for (size_t i = 0; i < dimension_; ++i) projected[i] = Dot(projection_.data() + i * dimension_, center, dimension_);
    std::fill(projected_gradient.begin(), projected_gradient.end(), 0.0F);
    for (uint32_t pair = batch.pairs.offsets[row]; pair < batch.pairs.offsets[row + 1]; ++pair) {
      const uint32_t context_row = batch.pairs.contexts[pair];
      const bool neighbour = context_row < batch.pairs.first_negative;
      const float* context = contexts.data() + size_t{context_row} * dimension_;
      const float score = Dot(projected.data(), context, dimension_) + bias_;
      const float small = std::exp(-std::abs(score));
      const float probability = (score > 0 ? 1.0F : small) / (1.0F + small);
      loss.Add(score, neighbour, small);
      const float gradient = probability - (neighbour ? 1.0F : 0.0F);
      AddScaled(projected_gradient.data(), gradient, context, dimension_);
      AddScaled(out.rows[kContext].data() + size_t{context_row} * dimension_, gradient, projected.data(), dimension_);
      out.bias += gradient;
    }
    float* center_gradient = out.rows[kCenter].data() + row * dimension_;
    for (size_t i = 0; i < dimension_; ++i) {
      AddScaled(center_gradient, projected_gradient[i], projection_.data() + i * dimension_, dimension_);
      AddScaled(out.projection.data() + i * dimension_, projected_gradient[i], center, dimension_);
    }
  }
  out.loss = loss.Total();
  return out;
}

void SkipGram::Apply(const Gradients& gradients) {
  for (size_t i = 0; i < projection_.size(); ++i)
    Adagrad(projection_[i], projection_squares_[i], gradients.projection[i], learning_rate_);
  Adagrad(bias_, bias_squares_, gradients.bias, learning_rate_);
}

}  // namespace embedding_job
