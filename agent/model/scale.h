// The factor from the program's unit to the exposed unit: from milliseconds to seconds it is 0.001.
//
// A scale of 1/n divides by n, so that 9 ms become 0.009 s and not 0.009000000000000001.
// Thread safety: a value.
#pragma once

#include <cmath>

namespace persia::agent {

class Scale {
 public:
  Scale() = default;
  // REQUIRES: `factor` is positive and finite.
  explicit Scale(double factor) : multiplier_(factor) {
    const double inverse = std::round(1 / factor);
    if (factor < 1 && inverse < 1e15 && 1 / inverse == factor) {
      multiplier_ = 1;
      divisor_ = inverse;
    }
  }

  [[nodiscard]] bool is_one() const { return multiplier_ == 1 && divisor_ == 1; }
  // From the program's unit to the exposed unit. Keeps the order of values; different values may become equal.
  [[nodiscard]] double Apply(double value) const { return value * multiplier_ / divisor_; }
  // From the exposed unit to the program's unit.
  [[nodiscard]] double Undo(double value) const { return value * divisor_ / multiplier_; }

  friend bool operator==(const Scale&, const Scale&) = default;

 private:
  double multiplier_ = 1;
  double divisor_ = 1;
};

}  // namespace persia::agent
