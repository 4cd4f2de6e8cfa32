// The shortest form of a list of steps that fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace persia::agent::model {

// Removes a step, or two together: some undo each other.
template <class Step, class Fails>
bool Shorten(std::vector<Step>& steps, const Fails& fails) {
  for (size_t i = 0; i < steps.size(); ++i) {
    for (size_t j = i; j < steps.size(); ++j) {
      std::vector<Step> without = steps;
      without.erase(without.begin() + static_cast<ptrdiff_t>(j));
      if (j != i) without.erase(without.begin() + static_cast<ptrdiff_t>(i));
      if (!fails(without)) continue;
      steps = std::move(without);
      return true;
    }
  }
  return false;
}

template <class Step, class Fails>
bool Lower(std::vector<Step>& steps, const Fails& fails) {
  bool lowered = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (uint32_t Step::*number : {&Step::a, &Step::b}) {
      for (uint32_t lower = 0; lower < steps[i].*number; ++lower) {
        std::vector<Step> lowest = steps;
        lowest[i].*number = lower;
        if (!fails(lowest)) continue;
        steps = std::move(lowest);
        lowered = true;
      }
    }
  }
  return lowered;
}

// Removes steps and lowers their numbers `a` and `b` as long as `fails(steps)`.
template <class Step, class Fails>
void Shrink(std::vector<Step>& steps, const Fails& fails) {
  while (Shorten(steps, fails) || Lower(steps, fails)) {
  }
}

}  // namespace persia::agent::model
