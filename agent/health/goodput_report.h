// Where the time of the ranks has gone, and what follows from it: the goodput, and the mean time to repair.
//
// An agent counts in whole nanoseconds, so that its sums are exact (GoodputReport). The summary of a run, which may be of any
// agent, has seconds (GoodputInSeconds).
//
// Thread safety: plain data.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "health/rank_account.h"
#include "model/process_id.h"

namespace persia::agent {

template <class Duration>
struct BasicGoodputReport {
  struct Rank {
    RankId rank = {};
    std::array<Duration, kBuckets> time{};     // by Bucket
    std::optional<uint64_t> redone_steps = 0;  // none: unknown
    uint64_t restarts = 0;
    Duration repair{0};
    bool marks = false;
    std::optional<double> step = {};  // the highest one

    [[nodiscard]] Duration AllTime() const {
      Duration sum{0};
      for (const Duration one : time) sum += one;
      return sum;
    }
    friend bool operator==(const Rank&, const Rank&) = default;
  };
  std::vector<Rank> ranks = {};  // in the order of their keys

  [[nodiscard]] Rank Total() const {
    return TotalOf([](const Rank&) { return true; });
  }
  // Of the ranks that mark phases, or of the others.
  [[nodiscard]] Rank TotalOfMarking(bool marks) const {
    return TotalOf([marks](const Rank& rank) { return rank.marks == marks; });
  }
  // The share of their time that the ranks which mark phases spend in compute, and do not repeat. None: no rank marks phases.
  [[nodiscard]] std::optional<double> Ratio() const {
    const Rank total = TotalOfMarking(true);
    const auto all = static_cast<double>(total.AllTime().count());
    const auto compute = static_cast<double>(total.time[static_cast<size_t>(Bucket::kCompute)].count());
    return all > 0 ? std::optional(compute / all) : std::nullopt;
  }
  // The mean time from the failure of a process until its successor has reached the step at which it failed. None: no restart.
  [[nodiscard]] std::optional<std::chrono::duration<double>> MeanRepair() const {
    const Rank total = Total();
    if (total.restarts == 0) return std::nullopt;
    return std::chrono::duration<double>(total.repair) / static_cast<double>(total.restarts);
  }

  friend bool operator==(const BasicGoodputReport&, const BasicGoodputReport&) = default;

 private:
  template <class Wanted>
  [[nodiscard]] Rank TotalOf(Wanted wanted) const {
    Rank total;
    for (const Rank& rank : ranks) {
      if (!wanted(rank)) continue;
      for (size_t i = 0; i < kBuckets; ++i) total.time[i] += rank.time[i];
      total.redone_steps =
          total.redone_steps && rank.redone_steps ? std::optional(*total.redone_steps + *rank.redone_steps) : std::nullopt;
      total.restarts += rank.restarts;
      total.repair += rank.repair;
      total.marks = total.marks || rank.marks;
      if (rank.step) total.step = std::max(total.step.value_or(0), *rank.step);
    }
    return total;
  }
};

using GoodputReport = BasicGoodputReport<std::chrono::nanoseconds>;
using GoodputInSeconds = BasicGoodputReport<std::chrono::duration<double>>;

}  // namespace persia::agent
