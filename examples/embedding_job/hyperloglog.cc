#include "hyperloglog.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "hashing.h"

namespace embedding_job {
namespace {

// Ertl's sigma, the correction for empty registers. His tau, for full ones, adds nothing below 2^50 ids.
double Sigma(double x) {
  if (x == 1.0) return std::numeric_limits<double>::infinity();
  double power = 1;
  double sum = x;
  for (double before = -1; sum != before; power += power) {
    before = sum;
    x *= x;
    sum += x * power;
  }
  return sum;
}

}  // namespace

HyperLogLog::HyperLogLog() : registers_(kRegisters, 0) { registers_of_rank_[0] = kRegisters; }

void HyperLogLog::Add(uint64_t id) {
  const uint64_t hash = MixBits(id);
  uint8_t& reg = registers_[hash >> (64 - kIndexBits)];
  // The position of the first set bit among the others; a bit set below them ends the search.
  const auto rank = static_cast<uint8_t>(1 + std::countl_zero((hash << kIndexBits) | (uint64_t{1} << (kIndexBits - 1))));
  if (rank > reg) {
    --registers_of_rank_[reg];
    ++registers_of_rank_[rank];
    reg = rank;
  }
}

double HyperLogLog::Estimate() const {
  const double m = kRegisters;
  double z = 0;
  for (int rank = kMaxRank; rank >= 1; --rank) z = 0.5 * (z + registers_of_rank_[rank]);
  z += m * Sigma(registers_of_rank_[0] / m);
  return m * m / (2 * std::numbers::ln2) / z;
}

}  // namespace embedding_job
