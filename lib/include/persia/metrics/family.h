// Series of one name that differ by labels.
#pragma once

#include <initializer_list>
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

// The series of one (group, name), made on first use of a label set:
//
//   Family<Counter> nans("persia", "nan_count", {.help = "..."});
//   Counter user = nans.With({{"feat", "user_id"}});   // keep the handle where it is hot
//   nans.With({{"feat", "item_id"}}).Increment();      // or look it up each time
//
// `Description::labels` stand on every child. A child that was asked for starts at 0 (a gauge: unset).
// Thread safety: any method, from any thread; looking up a child that exists takes no lock.
template <class Instrument>
class PERSIA_METRICS_API Family {
 public:
  // A family of counters, or of gauges that merge by kLast.
  Family(std::string_view group, std::string_view name, const Description& about = {}) noexcept
      requires(!std::same_as<Instrument, Histogram>);
  // A family of gauges that merge by `merge`.
  Family(std::string_view group, std::string_view name, const Description& about,
         GaugeMerge merge) noexcept requires std::same_as<Instrument, Gauge>;
  // A family of histograms that share their bounds.
  Family(std::string_view group, std::string_view name, std::span<const double> bounds,
         const Description& about = {}) noexcept requires std::same_as<Instrument, Histogram>;

  // The child with these labels.
  Instrument With(LabelView labels) noexcept;
  Instrument With(std::initializer_list<Label> labels) noexcept { return With(LabelView(labels.begin(), labels.size())); }

 private:
  internal::FamilyNode* node_;  // of the registry, never freed; null: refused, its children count nothing
  LabelSet const_labels_;
};

extern template class Family<Counter>;
extern template class Family<Gauge>;
extern template class Family<Histogram>;

}  // namespace persia::metrics
