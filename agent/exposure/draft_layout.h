// Builds the families and series of a plan.
//
// Parts are added in any order; parts of one identity with the same labels form one series. Series whose labels had to be
// changed for Prometheus are placed last: such a series must neither displace one with the program's own labels, nor be merged
// with it. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "exposure/exposure_plan.h"
#include "exposure/identities.h"
#include "exposure/series_limits.h"
#include "model/diagnostics.h"
#include "model/snapshot.h"

namespace persia::agent {

// Whether the process of a part has the series now, and has not removed it.
enum class Presence : uint8_t { kPresent, kRemoved, kEnded, kEndedAfterRemoval };

class DraftLayout {
 public:
  static constexpr char kSourceLabel[] = "source";

  // `identities` are those of the layout, by index, and outlive the draft. `own_values` values of the agent's own sources come
  // first in the snapshot.
  DraftLayout(const SeriesLimits& limits, const std::vector<Identity>& identities, size_t own_values)
      : limiter_(limits), identities_(identities), own_values_(own_values) {}

  // Adds an empty family. Indexes count from 0. REQUIRES: families are added in the order of their names.
  void AddFamily(FamilyLayout layout, Fill fill, GaugePolicy policy, std::vector<uint32_t> cuts = {},
                 std::optional<std::chrono::milliseconds> ttl = {});
  [[nodiscard]] GaugePolicy policy(size_t family) const { return families_[family].policy; }

  // Adds a part to the series with these labels, which are the program's own. All parts of a series have one scale. A series
  // counts from the earliest `birth_unix_ns` of its parts; 0: unknown.
  //
  // A series is exposed while a living process has it, or if only ended ones had it, and not if living processes have only
  // removed it. What a process counted before it removed the series still counts, but a removed gauge has no value. REQUIRES:
  // the parts of processes that have removed the series come after the others.
  void AddPart(size_t family, uint32_t identity, const Labels& labels, Part part, uint64_t birth_unix_ns,
               const Scale& scale = {}, Presence presence = Presence::kPresent) {
    TryAddPart(families_[family], identity, labels, {}, part, birth_unix_ns, scale, presence);
  }
  // Adds a series of the agent's own sources, whose values begin at `first_value` of the snapshot. No limit applies to it. The
  // values of its labels may be any bytes, such as the kernel's name of an interface: they become valid UTF-8, and a number
  // keeps series apart whose values become the same.
  void AddOwnSeries(size_t family, uint32_t identity, Labels labels, size_t first_value);
  // The metrics of which the series are counted by CountByDefinition.
  void SetLeftOut(std::vector<LeftOutMetric> metrics) { left_out_ = std::move(metrics); }
  // Counts a series that is left out because another definition of its name won.
  void CountByDefinition() { ++limiter_.left_out.definition; }
  // Counts a series that is left out because there are too many families.
  void CountByFamilyLimit() { ++limiter_.left_out.family_limit; }
  // As AddPart, for labels that differ from the program's. `source` is the metric's name with the program's labels.
  void AddChangedPart(size_t family, uint32_t identity, const Labels& labels, std::string source, Part part,
                      uint64_t birth_unix_ns, const Scale& scale, Presence presence) {
    changed_.push_back({family, std::move(source), identity, labels, part, birth_unix_ns, scale, presence});
  }

  // Returns the plan, without empty families. Clears the draft.
  ExposurePlan Finish(Diagnostics& diagnostics);

 private:
  struct Series {
    uint32_t identity;
    SeriesLabels labels;  // packed: there may be many series
    std::string source;   // empty: the labels are the program's own
    uint64_t birth_unix_ns;
    Scale scale;
    bool present = false;  // in a living process
    bool removed = false;  // by a living process

    [[nodiscard]] bool hidden() const { return removed && !present; }
  };
  struct Family {
    FamilyLayout layout;
    Fill fill = Fill::kCounter;
    GaugePolicy policy = GaugePolicy::kLast;
    std::vector<uint32_t> cuts;
    std::optional<std::chrono::milliseconds> ttl;
    std::vector<Series> series;
    std::vector<SeriesLayout> own_series;
    std::unordered_map<std::string, uint32_t> by_key;
    std::unordered_set<std::string> refused;       // keys of series beyond a limit
    std::vector<std::pair<uint32_t, Part>> parts;  // with the index of their series
  };
  struct ChangedPart {
    size_t family;
    std::string source;
    uint32_t identity;
    SeriesLabels labels;
    Part part;
    uint64_t birth_unix_ns;
    Scale scale;
    Presence presence;
  };

  bool TryAddPart(Family& family, uint32_t identity, const Labels& labels, const std::string& source, Part part,
                  uint64_t birth_unix_ns, const Scale& scale, Presence presence);
  static void DropHidden(Family& family);
  void AddChanged(Diagnostics& diagnostics);
  static void PlaceParts(const Family& family, ExposurePlan& plan);
  static void PlaceScale(const FamilyLayout& family, size_t first_value, const Scale& scale, ExposurePlan& plan);

  SeriesLimiter limiter_;
  const std::vector<Identity>& identities_;
  const size_t own_values_;
  std::vector<Family> families_;
  std::vector<ChangedPart> changed_;
  std::vector<LeftOutMetric> left_out_;
};

}  // namespace persia::agent
