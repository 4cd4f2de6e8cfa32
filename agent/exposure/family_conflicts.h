// Decides which exposed families the definitions of all processes become.
//
// Several definitions may have one exposed name: those of one metric in several processes, and those of different metrics that
// the naming exposes under one name. Rules, in this order:
//   1. A family named `x_sum`, `x_count` or `x_bucket` beside a histogram or summary `x` would have samples named like those of
//      `x`. Its type is appended to its name: `x_sum_counter`.
//   2. If definitions of a name differ in type, or only some are made of streams, the newest wins; the others are left out. The
//      agent's own families always win.
//   3. If histograms of one identity differ in bounds, or in their native buckets, the newest wins; the others are left out.
//      Different identities may have different bounds: then the name has one family for each set of bounds.
//   4. If several metrics remain under one name and with the same labels set by the naming, all but the first, by group and
//      name, get a label `source` with their group and name. Beside a family of the agent's own, each of them gets one.
// Every application of a rule is reported. The result depends on the set of definitions alone, not on their order.
// Thread safety: a pure function, apart from the reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "exposure/definition.h"
#include "model/diagnostics.h"
#include "model/snapshot.h"

namespace persia::agent {

// The family that a definition becomes part of.
struct Placement {
  static constexpr size_t kLeftOut = SIZE_MAX;
  size_t family = kLeftOut;  // index into ExposedFamilies::families
  bool source_label = false;
  bool shared = false;  // with other metrics, distinguished by labels
};

struct ExposedFamily {
  std::string name;
  size_t definition = 0;  // the newest with these bounds; one filled from segments has precedence
  size_t newest = 0;      // the newest of the name: its help and unit apply to all families of the name
};

struct ExposedFamilies {
  std::vector<ExposedFamily> families;  // sorted by name
  std::vector<Placement> placements;    // by definition
  std::vector<LeftOutMetric> left_out;  // in the order of their names
};

ExposedFamilies ResolveFamilies(std::span<const Definition> definitions, Diagnostics& diagnostics);

}  // namespace persia::agent
