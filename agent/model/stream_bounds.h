// The boundaries of a stream's buckets: 2^(k/4) for k from -80 to 80, in the program's unit.
//
// A histogram of a stream can only have these boundaries as bounds: its counts are exact there, and would be estimates
// elsewhere. Thread safety: pure functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/scale.h"

namespace persia::agent {

inline constexpr int kFirstStreamBound = -80;  // 2^-20
inline constexpr int kLastStreamBound = 80;    // 2^20
inline constexpr int kStreamSchema = 2;        // of the native histogram that has these boundaries

// 2^(k/4), the nearest double. REQUIRES: kFirstStreamBound <= k <= kLastStreamBound.
double StreamBound(int k);

// For each bound, the boundary nearest to it by ratio; ascending, without duplicates. A bound that is not positive becomes the
// first boundary, one above all boundaries the last. REQUIRES: no bound is a NaN.
std::vector<double> SnapToStreamBounds(std::span<const double> bounds);
// As above, for bounds in the exposed unit, which is `scale` times the program's.
std::vector<double> SnapToStreamBounds(std::span<const double> bounds, const Scale& scale);

// For each bound of a histogram, the index of the stream's last bucket below it. REQUIRES: the bounds are boundaries of a
// stream, scaled by `scale`.
std::vector<uint32_t> StreamCuts(std::span<const double> bounds, const Scale& scale);

// The bounds of a rule that has none: the powers of four from 2^-10 to 2^16.
std::vector<double> DefaultStreamBounds();

}  // namespace persia::agent
