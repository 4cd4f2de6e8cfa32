// The inner loops, four lanes at a time, because a compiler may not reorder a floating-point sum.
//
// REQUIRES in all: n is a multiple of 4.
#pragma once

#include <cstddef>
#include <cstring>

namespace embedding_job {

using Lanes = float __attribute__((vector_size(16)));

inline Lanes LoadLanes(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

inline void StoreLanes(float* to, Lanes lanes) { std::memcpy(to, &lanes, sizeof(lanes)); }

// a . b
inline float Dot(const float* a, const float* b, size_t n) {
  Lanes sum = {0, 0, 0, 0};
  for (size_t i = 0; i < n; i += 4) sum += LoadLanes(a + i) * LoadLanes(b + i);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// y += x
inline void AddTo(float* y, const float* x, size_t n) {
  for (size_t i = 0; i < n; i += 4) StoreLanes(y + i, LoadLanes(y + i) + LoadLanes(x + i));
}

// y += factor * x
inline void AddScaled(float* y, float factor, const float* x, size_t n) {
  const Lanes factors = {factor, factor, factor, factor};
  for (size_t i = 0; i < n; i += 4) StoreLanes(y + i, LoadLanes(y + i) + factors * LoadLanes(x + i));
}

}  // namespace embedding_job
