// The series of a segment, and their values added over the process's threads.
//
// Thread safety: plain data.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "segment/segment_records.h"

namespace persia::agent {

// An index that a series of this kind does not have.
inline constexpr uint32_t kNoIndex = UINT32_MAX;

// A series, with its indexes into the arrays of SegmentValues.
struct SegmentSeries {
  SegmentSeriesRecord record;
  uint32_t whole = kNoIndex;  // its first cell: a counter's count; a histogram's sum, which its buckets follow
  uint32_t real =
      kNoIndex;  // a counter's fractions; the sum of a histogram or of an event's intervals; a stream's first of two
  uint32_t common = kNoIndex;  // a gauge's value, a stream's last value, an event's last timestamp
};

// The values of a segment, added up over its lanes.
struct SegmentValues {
  // A sum of doubles that is not added up yet: the first lane's value that is not zero, and a linked list of further ones.
  struct Real {
    double first = 0;
    uint32_t more = 0;  // index + 1 into `terms`; 0: none
  };
  struct Term {
    double value;
    uint32_t more;
  };

  std::vector<uint64_t> wholes;  // by slot; only cells that hold whole numbers are meaningful
  std::vector<Real> reals;
  std::vector<Term> terms;
  std::vector<uint64_t> commons;  // bits, as in the common lane
  uint64_t dropped[16] = {};

  // Whether two successive reads of one segment have the same values.
  [[nodiscard]] friend bool SameValues(const SegmentValues& a, const SegmentValues& b) {
    const auto same_real = [](const Real& x, const Real& y) { return Bits(x.first) == Bits(y.first) && x.more == y.more; };
    const auto same_term = [](const Term& x, const Term& y) { return Bits(x.value) == Bits(y.value) && x.more == y.more; };
    return a.wholes == b.wholes && a.commons == b.commons &&
           std::equal(a.reals.begin(), a.reals.end(), b.reals.begin(), b.reals.end(), same_real) &&
           std::equal(a.terms.begin(), a.terms.end(), b.terms.begin(), b.terms.end(), same_term);
  }

  static uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }

  // Appends the terms of a sum to `out`.
  void AppendTerms(uint32_t real, std::vector<double>& out) const {
    const Real& sum = reals[real];
    if (sum.first != 0) {
      out.push_back(sum.first);
    }
    for (uint32_t at = sum.more; at != 0; at = terms[at - 1].more) {
      out.push_back(terms[at - 1].value);
    }
  }
};

}  // namespace persia::agent
