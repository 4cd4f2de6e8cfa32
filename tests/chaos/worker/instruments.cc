#include "instruments.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

namespace chaos {
namespace {

using persia::metrics::Description;

constexpr double kUnit = 1.0 / 1024;
constexpr std::array<double, 6> kSizes = {0.25, 0.5, 1, 2, 4, 8};

// 30 bounds: the cells of sixteen such histograms fill a chunk.
std::vector<double> WideBounds() { return persia::metrics::LinearBounds(0.5, 0.5, 30); }

// Long, so that descriptors take space and the segment grows.
std::string ShardName(uint32_t shard) { return std::to_string(shard) + std::string(60, '-'); }

uint32_t BucketOf(std::span<const double> bounds, double value) {
  return static_cast<uint32_t>(std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin());
}

uint64_t Below(Random& random, uint64_t limit) { return random() % limit; }

// A multiple of 1/1024.
double Value(uint64_t units) { return static_cast<double>(units) * kUnit; }

}  // namespace

// The cell of each quantity. A histogram: its buckets from the lowest, then its sum.
struct Instruments::Cells {
  uint32_t whole = 0;
  uint32_t binary = 1;
  uint32_t tenths = 2;
  uint32_t farewell = 3;
  uint32_t last = 4;
  uint32_t step_last = 5;
  uint32_t events = 6;  // two
  uint32_t sizes = 8;
  uint32_t step = sizes + kSizes.size() + 2;
  uint32_t shards = step + static_cast<uint32_t>(persia::metrics::DefaultSecondsBounds().size()) + 2;
  uint32_t wide = shards + kShards;
  uint32_t wide_each = static_cast<uint32_t>(WideBounds().size()) + 2;
  uint32_t under_full = wide + kWideShards * wide_each;
  uint32_t summed = under_full + kUnderFullShards;
  uint32_t spread = summed + 1;
  uint32_t end = spread + kSizes.size() + 2;
};

const Instruments::Cells& Instruments::Layout() {
  static const Cells& cells = *new Cells;
  return cells;
}

uint32_t Instruments::CellCount() { return Layout().end; }

void Instruments::Describe() {
  const auto line = [](const char* kind, const std::string& metric, const std::string& labels, const std::string& part) {
    std::printf("%s\t%s\t%s\t%s\n", kind, metric.c_str(), labels.c_str(), part.c_str());
  };
  const auto histogram = [&](const char* sum_kind, const std::string& metric, const std::string& labels,
                             std::span<const double> bounds) {
    for (const double bound : bounds) line("whole", metric, labels, "bucket " + std::to_string(bound));
    line("whole", metric, labels, "bucket inf");
    line(sum_kind, metric, labels, "sum");
  };
  line("whole", "chaos_whole_total", "", "value");
  line("1024th", "chaos_binary_total", "", "value");
  line("real", "chaos_tenths_total", "", "value");
  line("whole", "chaos_farewell_total", "", "value");
  line("last", "chaos_last", "", "value");
  line("last", "chaos_step_time_cost_sec", "", "value");
  line("whole", "persia_events_total", "event=saved,type=chaos", "value");
  line("whole", "persia_events_total", "event=loaded,type=chaos", "value");
  histogram("1024th", "chaos_sizes", "", kSizes);
  histogram("real", "chaos_step_time_cost", "", persia::metrics::DefaultSecondsBounds());
  for (uint32_t i = 0; i < kShards; ++i) line("whole", "chaos_shard_total", "shard=" + ShardName(i), "value");
  for (uint32_t i = 0; i < kWideShards; ++i) histogram("1024th", "chaos_wide", "shard=" + ShardName(i), WideBounds());
  for (uint32_t i = 0; i < kUnderFullShards; ++i) {
    line("droppable", "chaos_under_full_total", "shard=" + ShardName(i), "value");
  }
  line("1024th", "chaos_summed_total", "", "value");
  histogram("1024th", "chaos_spread", "", kSizes);
}

Instruments::Instruments(uint32_t seed)
    : whole_("chaos", "whole_total", {.help = "Whole increments."}),
      binary_("chaos", "binary_total", {.help = "Increments of multiples of 1/1024, whole ones among them."}),
      tenths_("chaos", "tenths_total", {.help = "Increments that no double holds exactly."}),
      farewell_("chaos", "farewell_total", {.help = "Threads that ended, counted while they did."}),
      sizes_("chaos", "sizes", kSizes, {.help = "Multiples of 1/1024."}),
      step_("chaos", "step_time_cost", {.help = "Times that no double holds exactly.", .unit = "seconds"}),
      last_("chaos", "last", {.help = "A number that no other process sets."}),
      spread_("chaos", "spread"),
      summed_("chaos", "summed_total"),
      shards_("chaos", "shard_total", {.help = "Whole increments, by a label that appears during the run."}),
      wide_("chaos", "wide", WideBounds(), {.help = "Multiples of 1/1024, in many buckets."}),
      under_full_("chaos", "under_full_total", {.help = "Registered while the directory was full."}) {
  Random random(seed);
  const auto mix = [&](auto& order) {
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
  };
  mix(shard_.order);
  mix(wide_shard_.order);
}

void Instruments::RegisterNext(Slot& slot, Random& random) {
  const uint32_t there = shard_.there.load(std::memory_order_relaxed);
  if (there < kShards) {
    const uint32_t number = shard_.order[there];
    shard_.handles[there] = shards_.With({{"shard", ShardName(number)}});
    shard_.there.store(there + 1, std::memory_order_release);
    slot.Around({Entry::Units(Layout().shards + number, 1)}, [&] { shard_.handles[there].Increment(); });
  }
  const uint32_t wide_there = wide_shard_.there.load(std::memory_order_relaxed);
  if (wide_there < kWideShards && Below(random, 8) == 0) {
    wide_shard_.handles[wide_there] = wide_.With({{"shard", ShardName(wide_shard_.order[wide_there])}});
    wide_shard_.there.store(wide_there + 1, std::memory_order_release);
  }
}

void Instruments::RegisterUnderFull(Slot& slot, Random& random) {
  const auto number = static_cast<uint32_t>(Below(random, kUnderFullShards));
  slot.Around({Entry::Units(Layout().under_full + number, 1)}, [&] {
    under_full_.With({{"shard", ShardName(number)}}).Increment();
  });
}

template <class Observe>
void Instruments::CountValue(Slot& slot, uint32_t first_cell, std::span<const double> bounds, uint64_t units,
                             const Observe& observe) {
  const auto sum_cell = static_cast<uint32_t>(first_cell + bounds.size() + 1);
  slot.Around({Entry::Units(first_cell + BucketOf(bounds, Value(units)), 1), Entry::Units(sum_cell, units)},
              [&] { observe(Value(units)); });
}

void Instruments::CountOne(Slot& slot, Random& random) {
  const Cells& cells = Layout();
  const uint64_t kind = Below(random, 32);
  if (kind < 6) {
    const uint64_t by = 1 + Below(random, 7);
    slot.Around({Entry::Units(cells.whole, by)}, [&] { whole_.Increment(by); });
  } else if (kind < 12) {
    const uint64_t units = Below(random, 4) == 0 ? 1024 * Below(random, 4) : Below(random, 5000);
    slot.Around({Entry::Units(cells.binary, units)}, [&] { binary_.Increment(Value(units)); });
  } else if (kind < 18) {
    const uint64_t units = Below(random, 12 * 1024);
    const uint64_t which = Below(random, 3);
    if (which == 0) {
      CountValue(slot, cells.sizes, kSizes, units, [&](double value) { sizes_.Observe(value); });
    } else if (which == 1) {
      CountValue(slot, cells.spread, kSizes, units, [&](double value) { spread_.Add(value); });
    } else {
      slot.Around({Entry::Units(cells.summed, units)}, [&] { summed_.Add(Value(units)); });
    }
  } else if (const uint32_t there = wide_shard_.there.load(std::memory_order_acquire); kind < 22 && there > 0) {
    static const std::vector<double>& bounds = *new std::vector<double>(WideBounds());
    const auto pick = static_cast<uint32_t>(Below(random, there));
    CountValue(slot, cells.wide + wide_shard_.order[pick] * cells.wide_each, bounds, Below(random, 17 * 1024),
               [&](double value) { wide_shard_.handles[pick].Observe(value); });
  } else if (kind == 22) {
    const auto which = static_cast<uint32_t>(Below(random, 2));
    slot.Around({Entry::Units(cells.events + which, 1)}, [&] {
      persia::metrics::events::Record("chaos", which == 0 ? "saved" : "loaded", {{"which", int64_t{which}}});
    });
  } else if (const uint32_t shards = shard_.there.load(std::memory_order_acquire); shards > 0) {
    const auto pick = static_cast<uint32_t>(Below(random, shards));
    const uint64_t by = 1 + Below(random, 3);
    slot.Around({Entry::Units(cells.shards + shard_.order[pick], by)}, [&] { shard_.handles[pick].Increment(by); });
  }
}

void Instruments::CountOneSteady(Slot& slot, Random& random) {
  const Cells& cells = Layout();
  if (Below(random, 2) == 0) {
    const double by = 0.1 * static_cast<double>(1 + 2 * Below(random, 4));  // 0.1, 0.3, 0.5, 0.7
    return slot.Around({Entry::Real(cells.tenths, by)}, [&] { tenths_.Increment(by); });
  }
  const std::span<const double> bounds = persia::metrics::DefaultSecondsBounds();
  const double seconds = 0.0001 * static_cast<double>(1 + Below(random, 9999));
  const auto sum_cell = static_cast<uint32_t>(cells.step + bounds.size() + 1);
  slot.Around({Entry::Units(cells.step + BucketOf(bounds, seconds), 1), Entry::Real(sum_cell, seconds),
               Entry::Last(cells.step_last, seconds)},
              [&] { step_.Observe(seconds); });
}

void Instruments::SetLast(Slot& slot, double value) {
  slot.Around({Entry::Last(Layout().last, value)}, [&] { last_.Set(value); });
}

void Instruments::CountFarewell(Slot& slot) {
  slot.Around({Entry::Units(Layout().farewell, 1)}, [&] { farewell_.Increment(); });
}

}  // namespace chaos
