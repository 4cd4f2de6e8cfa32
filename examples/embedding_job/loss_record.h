// The mean loss of the first batches, and of the last.
//
// Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace embedding_job {

class LossRecord {
 public:
  // The mean loss of a pair in a batch.
  void Add(double loss) {
    if (batches_ < kWindow) first_sum_ += loss;
    newest_[batches_ % kWindow] = loss;
    ++batches_;
  }

  [[nodiscard]] uint64_t batches() const { return batches_; }
  // Means of up to 20 batches; 0 before the first batch.
  [[nodiscard]] double First() const { return batches_ == 0 ? 0 : first_sum_ / static_cast<double>(InWindow()); }
  [[nodiscard]] double Last() const {
    const auto end = newest_.begin() + static_cast<ptrdiff_t>(InWindow());
    return batches_ == 0 ? 0 : std::accumulate(newest_.begin(), end, 0.0) / static_cast<double>(InWindow());
  }

 private:
  static constexpr size_t kWindow = 20;
  [[nodiscard]] size_t InWindow() const { return static_cast<size_t>(std::min<uint64_t>(batches_, kWindow)); }

  uint64_t batches_ = 0;
  double first_sum_ = 0;
  std::array<double, kWindow> newest_{};
};

}  // namespace embedding_job
