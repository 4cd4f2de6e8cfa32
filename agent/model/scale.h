// What values are multiplied by between the program's unit and the exposed one: milliseconds to seconds is 0.001.
//
// A scale of 1/n divides by n, so that 9 ms become 0.009 s, the number nearest to it, and not 0.009000000000000001.
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
  // From the program's unit to the exposed one. Keeps the order of values, but may make two of them one.
  [[nodiscard]] double Apply(double value) const { return value * multiplier_ / divisor_; }
  // And back.
  [[nodiscard]] double Undo(double value) const { return value * divisor_ / multiplier_; }

  friend bool operator==(const Scale&, const Scale&) = default;

 private:
  double multiplier_ = 1;
  double divisor_ = 1;
};

}  // namespace persia::agent
