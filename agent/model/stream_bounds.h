// The boundaries at which a stream counts its values: 2^(k/4) for k from -80 to 80, in the program's unit.
//
// A histogram of a stream can only have bounds that are among them: there every count is exact, elsewhere it would be a guess.
// Thread safety: pure functions, any thread.
#pragma once

#include <span>
#include <vector>

#include "model/scale.h"

namespace persia::agent {

inline constexpr int kFirstStreamBound = -80;  // 2^-20
inline constexpr int kLastStreamBound = 80;    // 2^20

// 2^(k/4), the nearest double. REQUIRES: kFirstStreamBound <= k <= kLastStreamBound.
double StreamBound(int k);

// For each bound the boundary that is nearest to it by ratio; each once, ascending. What is not positive becomes the first,
// what is above all of them the last. REQUIRES: no bound is a NaN.
std::vector<double> SnapToStreamBounds(std::span<const double> bounds);
// The same of bounds in the exposed unit, to which `scale` leads.
std::vector<double> SnapToStreamBounds(std::span<const double> bounds, const Scale& scale);

// Bounds for whoever names none: the powers of four from 2^-10 to 2^16.
std::vector<double> DefaultStreamBounds();

}  // namespace persia::agent
