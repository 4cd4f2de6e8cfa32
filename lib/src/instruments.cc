#include "persia/metrics/instruments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <string>
#include <vector>

#include "cells.h"
#include "persia/metrics/family.h"
#include "registry.h"

namespace persia::metrics {
namespace {

using internal::FamilyNode;
using segment::Drop;
using segment::Kind;

// PersiaML's own, which are Prometheus's default ones, and finer ones below for look-ups.
constexpr std::array<double, 16> kSecondsBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                   0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};

const internal::BucketIndex* BucketsOf(const FamilyNode* family) {
  return family == nullptr ? &internal::kNoBounds : family->buckets.get();
}

}  // namespace

std::vector<double> LinearBounds(double start, double width, int count) {
  std::vector<double> bounds;
  for (int i = 0; i < count; ++i) {
    bounds.push_back(start + width * i);
  }
  return bounds;
}

std::vector<double> ExponentialBounds(double start, double factor, int count) {
  std::vector<double> bounds;
  for (int i = 0; i < count; ++i) {
    bounds.push_back(i == 0 ? start : bounds.back() * factor);
  }
  return bounds;
}

std::span<const double> DefaultSecondsBounds() noexcept { return kSecondsBounds; }

Counter::Counter(std::string_view group, std::string_view name, const Description& about) noexcept
    : slot_(Registry::Get().FindOrAddChild(Registry::Get().FindOrAddFamily({Kind::kCounter, group, name, about}),
                                           about.labels)) {}

void Counter::AddSlow(uint32_t slot, uint64_t by) noexcept { AddWhole(slot, by); }

void Counter::AddFraction(double by) noexcept {
  if (by >= 0 && std::isfinite(by)) {
    AddDouble(slot_ + 1, by);
  } else {
    CountBadValue();
  }
}

void Counter::CountBadValue() noexcept { Registry::Get().CountDropped(Drop::kBadValue); }

Gauge::Gauge(std::string_view group, std::string_view name, const Description& about, GaugeMerge merge) noexcept
    : slot_(Registry::Get().FindOrAddChild(
          Registry::Get().FindOrAddFamily({Kind::kGauge, group, name, about, static_cast<uint8_t>(merge)}), about.labels)) {}

void Gauge::SetSlow(double value) noexcept {
  CommonCell(slot_).store(std::bit_cast<uint64_t>(value), std::memory_order_relaxed);
}

void Gauge::Add(double by) noexcept {
  UpdateShared(CommonCell(slot_),
               [by](uint64_t bits) { return bits == segment::kUnset ? by : std::bit_cast<double>(bits) + by; });
}

Histogram::Histogram(std::string_view group, std::string_view name, std::span<const double> bounds,
                     const Description& about) noexcept {
  FamilyNode* family = Registry::Get().FindOrAddFamily({Kind::kHistogram, group, name, about, 0, bounds});
  slot_ = Registry::Get().FindOrAddChild(family, about.labels);
  buckets_ = BucketsOf(family);
}

void Histogram::ObserveSlow(double value) noexcept {
  if (std::isnan(value)) {
    return Registry::Get().CountDropped(Drop::kBadValue);
  }
  AddDouble(slot_, value);
  AddWhole(slot_ + 1 + internal::BucketOf(*buckets_, value), 1);
}

TimeCost::TimeCost(std::string_view group, std::string_view name, const Description& about,
                   std::span<const double> bounds) noexcept try
    : histogram_(group, name, bounds, about),
      last_(group, std::string(name) + "_sec",
            {.help = about.help + " The last one.", .unit = about.unit, .labels = about.labels}) {
} catch (const std::exception&) {
}

template <class Instrument>
Family<Instrument>::Family(std::string_view group, std::string_view name, const Description& about) noexcept
    requires(!std::same_as<Instrument, Histogram>)
    : node_(Registry::Get().FindOrAddFamily(
          {std::same_as<Instrument, Counter> ? Kind::kCounter : Kind::kGauge, group, name, about})),
      const_labels_(about.labels) {}

template <class Instrument>
Family<Instrument>::Family(std::string_view group, std::string_view name, const Description& about,
                           GaugeMerge merge) noexcept requires std::same_as<Instrument, Gauge>
    : node_(Registry::Get().FindOrAddFamily({Kind::kGauge, group, name, about, static_cast<uint8_t>(merge)})),
      const_labels_(about.labels) {}

template <class Instrument>
Family<Instrument>::Family(std::string_view group, std::string_view name, std::span<const double> bounds,
                           const Description& about) noexcept requires std::same_as<Instrument, Histogram>
    : node_(Registry::Get().FindOrAddFamily({Kind::kHistogram, group, name, about, 0, bounds})), const_labels_(about.labels) {}

template <class Instrument>
Instrument Family<Instrument>::With(LabelView labels) noexcept try {
  Instrument child;
  if (const_labels_.empty()) {
    child.slot_ = Registry::Get().FindOrAddSeries(node_, labels);
  } else {
    std::vector<Label> all(labels.begin(), labels.end());
    for (const auto& [name, value] : const_labels_) {
      all.push_back({name, value});
    }
    child.slot_ = Registry::Get().FindOrAddSeries(node_, all);
  }
  if constexpr (std::same_as<Instrument, Histogram>) {
    child.buckets_ = BucketsOf(node_);
  }
  return child;
} catch (const std::exception&) {
  return {};
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

InitResult Init(const Options& options) noexcept { return Registry::Get().Init(options); }

bool Exporting() noexcept { return Registry::Get().Exporting(); }

}  // namespace persia::metrics
