// Many series as a few: what a chart draws if it has more series than lines can be told apart.
//
// Series that differ in the labels of their ranks alone are a group, such as the phase `data` of all ranks. A band is the
// lowest, the middle and the highest value of a group at each point. Thread safety: functions of their argument.
#pragma once

#include <cstddef>
#include <vector>

#include "web/range_query.h"

namespace persia::agent {

struct Band {
  Labels labels;     // in which the group differs from others
  size_t sets = 0;   // of labels
  double usual = 0;  // the middle of the mean distances of its series from `median`
  // By point; NaN: there is no number. Of quantiles: of the one next to the median.
  std::vector<double> min = {};
  std::vector<double> median = {};
  std::vector<double> max = {};
  std::vector<double> high = {};  // the middle of the highest quantile; empty: there are not several
};

struct Bands {
  std::vector<Band> bands;  // by their labels; one, if there are more than 12 groups
  std::vector<size_t>
      shown;              // the series that differ most from the middle of their group, in their order, at most kShownSeries
  size_t not_finite = 0;  // label sets with a value that is no number
};

inline constexpr size_t kShownSeries = 120;

Bands BandsOf(const RangeResult& result);

// The series that lie apart from the others in the newest quarter of the points, the farthest first: those with a value that is
// no number, and those far from the middle. At most 4. Of quantiles: by the one next to the median.
std::vector<size_t> FindApart(const RangeResult& result);

}  // namespace persia::agent
