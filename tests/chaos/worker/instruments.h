// The metrics of a worker of the chaos test, and their cells in its ledger.
//
// Exact by construction: the values that many threads add are whole, or multiples of 1/1024, so that any order of additions
// gives the same double. Tenths, whose sums depend on the order, are added only by threads that live as long as their process,
// each to its own cell; the ledger makes the same additions in the same order.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <span>
#include <string>

#include "ledger.h"
#include "persia/metrics/metrics.h"

namespace chaos {

using Random = std::minstd_rand;

class Instruments {
 public:
  // Cells of the ledger.
  static uint32_t CellCount();
  // Prints the cells for the orchestrator, one per line: "<kind>\t<metric>\t<labels>\t<part>".
  static void Describe();

  // Registers the metrics without labels. `seed`: of the order in which label sets are registered.
  explicit Instruments(uint32_t seed);

  // Registers the next label set, if any is left, and counts in it. Main thread only.
  void RegisterNext(Slot& slot, Random& random);
  // The same for series that a full directory may refuse: their counts may be dropped, but not doubled.
  void RegisterUnderFull(Slot& slot, Random& random);

  // Counts one thing. Any thread with its own slot.
  void CountOne(Slot& slot, Random& random);
  // Counts one thing that needs a thread that lives as long as the process.
  void CountOneSteady(Slot& slot, Random& random);
  // Sets the gauge to a number that identifies this process. Main thread only.
  void SetLast(Slot& slot, double value);
  // Called while a thread ends.
  void CountFarewell(Slot& slot);

 private:
  static constexpr uint32_t kShards = 160;
  static constexpr uint32_t kWideShards = 8;
  static constexpr uint32_t kUnderFullShards = 32;
  struct Cells;
  static const Cells& Layout();
  // Calls `observe` with the value of `units`.
  template <class Observe>
  static void CountValue(Slot& slot, uint32_t first_cell, std::span<const double> bounds, uint64_t units,
                         const Observe& observe);

  persia::metrics::Counter whole_;
  persia::metrics::Counter binary_;
  persia::metrics::Counter tenths_;
  persia::metrics::Counter farewell_;
  persia::metrics::Histogram sizes_;
  persia::metrics::TimeCost step_;
  persia::metrics::Gauge last_;
  // Streams, which the rules make a histogram and a counter.
  persia::metrics::Stream spread_;
  persia::metrics::Stream summed_;
  persia::metrics::Family<persia::metrics::Counter> shards_;
  persia::metrics::Family<persia::metrics::Histogram> wide_;
  persia::metrics::Family<persia::metrics::Counter> under_full_;

  // The handles of a family's label sets registered so far; `there` is stored with release after them.
  template <class Instrument, uint32_t kMost>
  struct Registered {
    std::array<uint32_t, kMost> order;  // numbers of the label sets
    std::array<Instrument, kMost> handles;
    std::atomic<uint32_t> there = 0;
  };
  Registered<persia::metrics::Counter, kShards> shard_;
  Registered<persia::metrics::Histogram, kWideShards> wide_shard_;
};

}  // namespace chaos
