// A definition: the exposed family that the naming assigns to one family of a process, and how its values are computed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exposure/kind_families.h"
#include "model/diagnostics.h"
#include "model/scale.h"
#include "model/snapshot.h"
#include "naming/naming.h"
#include "segment/measurements.h"

namespace persia::agent {

struct Definition {
  static constexpr size_t kNoSegment = SIZE_MAX;
  size_t segment = kNoSegment;     // index of the segment; kNoSegment: the agent's own family
  std::string role = {};           // the role that the naming sets; empty: the process's own
  uint32_t identity = UINT32_MAX;  // by PlanIdentities, once these are numbered

  bool own = false;  // the agent's own family, not a program's metric
  std::string group = {};
  std::string name = {};
  std::string exposed = {};   // the exposed name
  Labels labels = {};         // added by the naming
  bool labels_yield = false;  // a series' own label of the same name wins

  MetricType type = MetricType::kUntyped;
  std::optional<Fill> fill = {};  // none: one of the agent's own sources has the values
  GaugePolicy policy = GaugePolicy::kLast;
  std::vector<double> bounds = {};
  std::optional<NativeBuckets> native = {};
  std::string help = {};
  std::string unit = {};
  Scale scale = {};
  std::optional<std::chrono::milliseconds> ttl = {};  // of a stream
  FamilyAge age = {};

  // "group/name", or the name of the agent's own family.
  [[nodiscard]] std::string Source() const { return own ? exposed : group + "/" + name; }
};

// The definition of `family`, as one of the families that its kind is exposed as. None: the naming drops it.
std::optional<Definition> DefinitionOf(const SegmentFamily& family, KindFamily as, const Naming& naming,
                                       Diagnostics& diagnostics);

// The definition of a family of the agent's own sources.
Definition DefinitionOf(const FamilyLayout& own);

// `0.5, 1, 2`
std::string BoundsText(std::span<const double> bounds);

}  // namespace persia::agent
