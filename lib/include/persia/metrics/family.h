// Series of one metric that differ by their labels.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <type_traits>

#include "persia/metrics/export.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/labels.h"
#include "persia/metrics/span.h"
#include "persia/metrics/stream.h"

namespace persia::metrics {
inline namespace abi_1 {

namespace internal {

struct FamilyNode;

// What a Family of each type has in common.
class PERSIA_METRICS_API FamilyBase {
 protected:
  enum class Type : uint8_t { kCounter, kGauge, kHistogram, kTimeCost, kStream };

  FamilyBase(Type type, std::string_view group, std::string_view name, GaugeMerge merge, Span<const double> bounds,
             const Description& about) noexcept;
  FamilyBase(std::string_view group, std::string_view name, const NativeBuckets& buckets, const Description& about) noexcept;
  uint32_t SlotOf(FamilyNode* node, LabelView labels) const noexcept;
  bool RemoveSeries(LabelView labels) const noexcept;
  void ClearSeries() const noexcept;

  template <class Instrument>
  static constexpr Type TypeOf() noexcept {
    constexpr bool kIsInstrument = std::is_same_v<Instrument, Counter> || std::is_same_v<Instrument, Gauge> ||
                                   std::is_same_v<Instrument, Histogram> || std::is_same_v<Instrument, TimeCost> ||
                                   std::is_same_v<Instrument, Stream>;
    static_assert(kIsInstrument, "a Family has Counters, Gauges, Histograms, TimeCosts or Streams");
    return std::is_same_v<Instrument, Counter>     ? Type::kCounter
           : std::is_same_v<Instrument, Gauge>     ? Type::kGauge
           : std::is_same_v<Instrument, Histogram> ? Type::kHistogram
           : std::is_same_v<Instrument, TimeCost>  ? Type::kTimeCost
                                                   : Type::kStream;
  }

  // Owned by the registry, never freed; null: the family was refused, and its children count nothing.
  FamilyNode* node_ = nullptr;
  FamilyNode* last_ = nullptr;                    // of time costs: the gauge of the last duration
  std::shared_ptr<const LabelSet> const_labels_;  // null if there are none
};

}  // namespace internal

// The series of one (group, name). A series is made when its label set is first used:
//
//   Family<Counter> nans("persia", "nan_count", {"Rows with NaN."});
//   Counter user = nans.With({{"feat", "user_id"}});   // fastest: keep the handle
//   nans.With({{"feat", "item_id"}}).Increment();      // or look the series up each time
//
// `Instrument` is Counter, Gauge, Histogram, TimeCost or Stream. The constructors are those of the instrument. Every child has
// the labels of `Description::labels` too. A new child starts at 0; a new gauge is unset.
// Thread safety: any method, from any thread. Looking up a child that exists takes no lock.
template <class Instrument>
class Family : private internal::FamilyBase {
  template <class Only, class Other = Only>
  using If = std::enable_if_t<std::is_same_v<Instrument, Only> || std::is_same_v<Instrument, Other>, int>;

 public:
  // A family. Its gauges have the merge policy kLast, its histograms and time costs DefaultSecondsBounds().
  Family(std::string_view group, std::string_view name, const Description& about = {}) noexcept
      : FamilyBase(TypeOf<Instrument>(), group, name, GaugeMerge::kLast, DefaultSecondsBounds(), about) {}
  // A family of gauges with merge policy `merge`.
  template <class Only = Gauge, If<Only> = 0>
  Family(std::string_view group, std::string_view name, GaugeMerge merge, const Description& about = {}) noexcept
      : FamilyBase(TypeOf<Instrument>(), group, name, merge, {}, about) {}
  // A family of histograms or time costs that share these bounds.
  template <class Only = Histogram, class Other = TimeCost, If<Only, Other> = 0>
  Family(std::string_view group, std::string_view name, Span<const double> bounds, const Description& about = {}) noexcept
      : FamilyBase(TypeOf<Instrument>(), group, name, GaugeMerge::kLast, bounds, about) {}
  // The same for bounds in braces.
  template <class Only = Histogram, class Other = TimeCost, If<Only, Other> = 0>
  Family(std::string_view group, std::string_view name, std::initializer_list<double> bounds,
         const Description& about = {}) noexcept
      : Family(group, name, Span<const double>(bounds.begin(), bounds.size()), about) {}
  // A family of native histograms that share these buckets.
  template <class Only = Histogram, If<Only> = 0>
  Family(std::string_view group, std::string_view name, const NativeBuckets& buckets, const Description& about = {}) noexcept
      : FamilyBase(group, name, buckets, about) {}

  // The child with these labels, in any order. If it is refused (instruments.h), it counts nothing.
  Instrument With(LabelView labels) noexcept;
  // The same, for labels in braces.
  Instrument With(std::initializer_list<Label> labels) noexcept { return With(LabelView(labels.begin(), labels.size())); }

  // Removes the child with these labels, in any order (remove.h): it is not exported until With gets its labels again, and then
  // starts from zero in this process. False: there is no such child, or memory ran out, which is logged; then nothing has
  // changed.
  bool Remove(LabelView labels) noexcept { return RemoveSeries(labels); }
  // The same, for labels in braces.
  bool Remove(std::initializer_list<Label> labels) noexcept { return Remove(LabelView(labels.begin(), labels.size())); }
  // Removes all children, also those with other labels in Description::labels.
  void Clear() noexcept { ClearSeries(); }
};

// Not for users: in the library.
// @{
template <>
PERSIA_METRICS_API Counter Family<Counter>::With(LabelView labels) noexcept;
template <>
PERSIA_METRICS_API Gauge Family<Gauge>::With(LabelView labels) noexcept;
template <>
PERSIA_METRICS_API Histogram Family<Histogram>::With(LabelView labels) noexcept;
template <>
PERSIA_METRICS_API TimeCost Family<TimeCost>::With(LabelView labels) noexcept;
template <>
PERSIA_METRICS_API Stream Family<Stream>::With(LabelView labels) noexcept;
// @}

}  // namespace abi_1
}  // namespace persia::metrics
