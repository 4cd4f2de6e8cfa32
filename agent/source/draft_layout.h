// The families and series of a plan while it is made.
//
// Series are given in any order, a part at a time, and meet where identity and labels are the same. A series whose labels had
// to be changed for Prometheus waits until all others have their places: it must not take the place of one that says what it
// means, nor add to it. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/snapshot.h"
#include "source/diagnostics.h"
#include "source/merge_plan.h"

namespace persia::agent {

// Sets a label of ours; one of the user's by that name steps aside to `exported_<name>`.
void SetLabel(Labels& labels, const std::string& name, std::string value);

class DraftLayout {
 public:
  static constexpr char kSourceLabel[] = "source";

  explicit DraftLayout(const SeriesLimits& limits) : limits_(limits) {}

  // Adds an empty family and gives its index. Families come in the order of their names.
  size_t AddFamily(FamilyLayout layout, Fill fill, GaugePolicy policy, std::vector<uint32_t> cuts = {},
                   std::optional<std::chrono::milliseconds> ttl = {});
  [[nodiscard]] GaugePolicy policy(size_t family) const { return families_[family].policy; }

  // Adds a part to the series with these labels, which say what the program said. All parts of a series have one scale.
  void AddPart(size_t family, uint32_t identity, Labels labels, Part part, const Scale& scale = {}) {
    TryAddPart(families_[family], identity, std::move(labels), {}, part, scale);
  }
  // A series was left out, since another definition of its name counts.
  void CountByDefinition() { ++left_out_.definition; }
  // The same for labels that are not what the program said: `said` is, in one text, with the metric's name.
  void AddChangedPart(size_t family, uint32_t identity, Labels labels, std::string said, Part part, const Scale& scale = {}) {
    changed_.push_back({family, std::move(said), identity, std::move(labels), part, scale});
  }

  // Lays out what was added, families without series left out. The draft is empty then.
  MergePlan Finish(std::vector<Identity> identities, Diagnostics& diagnostics);

 private:
  struct Series {
    uint32_t identity;
    Labels labels;
    std::string said;  // empty: the labels themselves
    Scale scale;
  };
  struct Family {
    FamilyLayout layout;
    Fill fill = Fill::kCounter;
    GaugePolicy policy = GaugePolicy::kLast;
    std::vector<uint32_t> cuts;
    std::optional<std::chrono::milliseconds> ttl;
    std::vector<Series> series;
    std::unordered_map<std::string, uint32_t> by_key;
    std::unordered_set<std::string> refused;       // keys for which there was no room
    std::vector<std::pair<uint32_t, Part>> parts;  // with the index of their series
  };
  struct ChangedPart {
    size_t family;
    std::string said;
    uint32_t identity;
    Labels labels;
    Part part;
    Scale scale;
  };

  bool TryAddPart(Family& family, uint32_t identity, Labels labels, const std::string& said, Part part, const Scale& scale);
  void AddChanged(Diagnostics& diagnostics);
  bool Admit(const Family& family, uint32_t identity, const Labels& labels);
  void ReportLimits(const std::vector<Identity>& identities, Diagnostics& diagnostics) const;
  static void PlaceParts(const Family& family, MergePlan& plan);
  static void PlaceScale(const FamilyLayout& family, size_t first_value, const Scale& scale, MergePlan& plan);

  const SeriesLimits limits_;
  std::vector<Family> families_;
  size_t series_ = 0;                        // admitted
  std::vector<size_t> series_of_;            // by identity
  std::map<uint32_t, std::string> over_;     // the first family that each identity had too much of
  std::map<std::string, std::string> long_;  // by family: a label whose values are too long
  SeriesLeftOut left_out_;
  std::vector<ChangedPart> changed_;
};

}  // namespace persia::agent
