// The series of a segment, and their values added over the process's threads.
//
// Thread safety: plain data.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
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

  // Replaces the terms of a sum. The former ones stay in `terms`, unused, until CompactTerms.
  void SetTerms(uint32_t real, std::span<const double> from) {
    Real& sum = reals[real];
    sum = {};
    const auto first = std::find_if(from.begin(), from.end(), [](double term) { return term != 0; });
    if (first == from.end()) return;
    sum.first = *first;
    // A chain starts with the term that was added last. Adding from the end keeps the order over encoding and decoding.
    for (auto at = from.end(); at != first + 1;) {
      terms.push_back({*--at, sum.more});
      sum.more = static_cast<uint32_t>(terms.size());
    }
  }

  // Drops unused terms if there are many.
  void CompactTerms() {
    constexpr size_t kMinTerms = 1024;  // with fewer, it does not pay
    if (terms.size() < kMinTerms + 2 * reals.size()) return;
    const std::vector<Term> former = std::exchange(terms, {});
    std::vector<double> chain;
    for (Real& sum : reals) {
      chain.clear();
      for (uint32_t at = sum.more; at != 0; at = former[at - 1].more) {
        chain.push_back(former[at - 1].value);
      }
      sum.more = 0;
      for (size_t i = chain.size(); i > 0; --i) {
        terms.push_back({chain[i - 1], sum.more});
        sum.more = static_cast<uint32_t>(terms.size());
      }
    }
  }
};

}  // namespace persia::agent
