// Series of one metric that differ by their labels.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "persia/metrics/export.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/labels.h"

namespace persia::metrics {

namespace internal {
struct FamilyNode;
}

// The series of one (group, name). A series is made when its label set is first used:
//
//   Family<Counter> nans("persia", "nan_count", {.help = "..."});
//   Counter user = nans.With({{"feat", "user_id"}});   // fastest: keep the handle
//   nans.With({{"feat", "item_id"}}).Increment();      // or look the series up each time
//
// Every child has the labels of `Description::labels` too. A new child starts at 0; a new gauge is unset.
// Thread safety: any method, from any thread. Looking up a child that exists takes no lock.
template <class Instrument>
class PERSIA_METRICS_API Family {
 public:
  // A family of counters, or of gauges with merge policy kLast.
  Family(std::string_view group, std::string_view name, const Description& about = {}) noexcept
      requires(!std::same_as<Instrument, Histogram>);
  // A family of gauges with merge policy `merge`.
  Family(std::string_view group, std::string_view name, const Description& about,
         GaugeMerge merge) noexcept requires std::same_as<Instrument, Gauge>;
  // A family of histograms that share their bounds.
  Family(std::string_view group, std::string_view name, std::span<const double> bounds,
         const Description& about = {}) noexcept requires std::same_as<Instrument, Histogram>;

  // A family of native histograms that share their buckets.
  Family(std::string_view group, std::string_view name, const NativeBuckets& buckets,
         const Description& about = {}) noexcept requires std::same_as<Instrument, Histogram>;

  // The child with these labels, in any order. If it is refused (instruments.h), it counts nothing.
  Instrument With(LabelView labels) noexcept;
  // The same, for labels in braces.
  Instrument With(std::initializer_list<Label> labels) noexcept { return With(LabelView(labels.begin(), labels.size())); }

 private:
  internal::FamilyNode*
      node_;  // owned by the registry, never freed; null: the family was refused, and its children count nothing
  std::shared_ptr<const LabelSet> const_labels_;  // null if there are none
};

extern template class Family<Counter>;
extern template class Family<Gauge>;
extern template class Family<Histogram>;

}  // namespace persia::metrics
