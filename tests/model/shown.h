// The values of the model's metrics in a snapshot. Thread safety: a pure function.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "model/snapshot.h"
#include "world.h"

namespace persia::agent::model {

// Of one identity. None: the series is not exposed.
struct Shown {
  std::array<std::optional<double>, kCounts> counts = {};
  std::array<std::optional<double>, std::size(kPolicies)> gauges = {};
  std::optional<double> in_phase = {};
};

struct AllShown {
  std::array<Shown, kIdentities> of = {};
  std::array<size_t, 2> series = {};  // by instance
  std::string wrong = {};             // about the snapshot itself; empty: nothing
};

AllShown ShownIn(const Snapshot& snapshot);

}  // namespace persia::agent::model
