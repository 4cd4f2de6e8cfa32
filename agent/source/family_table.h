// Which exposed families the families of all segments become.
//
// Several definitions can ask for one exposed name: those of one metric in several processes, and those of different metrics
// whose names are exposed alike. Rules, in this order:
//   1. A family named `x_sum`, `x_count` or `x_bucket` beside a histogram `x` would have samples named like the histogram's.
//      Its name gets its type behind it: `x_sum_counter`.
//   2. Of definitions that differ in type, or histograms in bounds, the newest counts; the others are left out. The agent's own
//      families are always the newest.
//   3. Where several metrics remain under one name and with the same labels by the naming, the first, by group and name, shows
//      plainly, and each other carries a label `source` with its group and name.
// What happens by these rules is reported. The outcome depends on the set of definitions alone, not on the order of their
// coming. Thread safety: a pure function but for the reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/scale.h"
#include "model/snapshot.h"
#include "source/diagnostics.h"
#include "source/merge_input.h"
#include "source/segment_records.h"

namespace persia::agent {

// A family as one segment defines it.
struct Definition {
  std::string group;
  std::string name;
  std::string exposed;  // by the naming
  Labels labels;        // by the naming
  bool own = false;     // of the agent: no metric of a program
  MetricType type = MetricType::kUntyped;
  GaugePolicy policy = GaugePolicy::kLast;
  std::vector<double> bounds;
  std::string help;
  std::string unit;
  Scale scale;
  FamilyAge age;
};

// What became of a definition.
struct Placement {
  static constexpr size_t kLeftOut = SIZE_MAX;
  size_t family = kLeftOut;  // index into ExposedFamilies::families
  bool source_label = false;
  bool shared = false;  // with other metrics, which labels tell apart
};

struct ExposedFamily {
  std::string name;
  size_t definition = 0;  // that counts
};

struct ExposedFamilies {
  std::vector<ExposedFamily> families;  // sorted by name
  std::vector<Placement> placements;    // by definition
};

ExposedFamilies ResolveFamilies(std::span<const Definition> definitions, Diagnostics& diagnostics);

}  // namespace persia::agent
