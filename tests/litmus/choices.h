// The choices of one execution of the reader: which of the stores that it may load it does load, and how far the writer has
// got.
//
//   Exhaustive choices;                     Seeded choices(seed);
//   do { Execute(choices); } while (choices.Advance());
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "recorder.h"

namespace persia::litmus {

class Choices {
 public:
  virtual ~Choices() = default;
  // Below `count`. 0 is the oldest store.
  virtual uint32_t OfStores(uint32_t count) = 0;
  // A new position of the writer, between `now` and `end`.
  virtual uint32_t OfPosition(uint32_t now, uint32_t end) = 0;
  // After how many loads the writer goes on.
  virtual uint32_t LoadsUntilMove() = 0;
  virtual bool OfTwo() = 0;
};

// All executions, one after the other. The writer is always at its end: then a load may return each store that it may return in
// any execution.
class Exhaustive : public Choices {
 public:
  uint32_t OfStores(uint32_t count) override {
    if (at_ == taken_.size()) taken_.push_back({0, count});
    return taken_[at_++].choice;
  }
  uint32_t OfPosition(uint32_t /*now*/, uint32_t end) override { return end; }
  uint32_t LoadsUntilMove() override { return UINT32_MAX; }
  bool OfTwo() override { return false; }
  // False: there are no more executions.
  bool Advance() {
    at_ = 0;
    while (!taken_.empty() && taken_.back().choice + 1 == taken_.back().count) {
      taken_.pop_back();
    }
    if (taken_.empty()) return false;
    ++taken_.back().choice;
    return true;
  }

 private:
  struct Taken {
    uint32_t choice;
    uint32_t count;
  };
  std::vector<Taken> taken_;
  size_t at_ = 0;
};

// Prefers old stores, new ones, or neither, by the seed.
class Seeded : public Choices {
 public:
  explicit Seeded(uint64_t seed)
      : random_(seed), old_of_16_(kOld[random_.Below(std::size(kOld))]), loads_(1U << random_.Below(13)) {}
  uint32_t OfStores(uint32_t count) override {
    if (random_.OneIn(64)) old_of_16_ = kOld[random_.Below(std::size(kOld))];
    if (random_.OneIn(8)) return random_.Below(count);
    return random_.Below(16) < old_of_16_ ? 0 : count - 1;
  }
  uint32_t OfPosition(uint32_t now, uint32_t end) override {
    const uint32_t left = end - now;
    return random_.OneIn(4) ? now + random_.Below(left + 1) : now + random_.Below(left / 8 + 1);
  }
  uint32_t LoadsUntilMove() override { return 1 + random_.Below(loads_); }
  bool OfTwo() override { return random_.OneIn(2); }

 private:
  static constexpr uint32_t kOld[] = {0, 1, 8, 15, 16};
  Random random_;
  uint32_t old_of_16_;
  uint32_t loads_;
};

}  // namespace persia::litmus
