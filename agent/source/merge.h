// Merges what a job's processes have measured, and those that ended, into what the job shows.
//
// Processes of one identity (role, replica) show together: counters, histograms and event counts add, exactly; gauges follow
// their policy. The plan of what adds up to what is laid out when a series comes or goes; between, a merge only fills numbers
// into the same layout.
//
// Where two names would meet in one exposed series they are told apart by a label `source`; where definitions of one exposed
// name differ in type or bounds, the newest wins and the others are left out. Both are reported. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/naming.h"
#include "model/snapshot.h"
#include "source/diagnostics.h"
#include "source/exact_sum.h"
#include "source/merge_input.h"
#include "source/merge_plan.h"
#include "source/stream_ages.h"

namespace persia::agent {

class Merger {
 public:
  // REQUIRES: `naming` and `diagnostics` outlive this.
  Merger(MergeIdentity identity, const Naming& naming, Diagnostics& diagnostics, SeriesLimits limits = {});

  // The snapshot of these inputs. The layout is the same object as last time if no series came or went.
  std::shared_ptr<const Snapshot> Merge(std::span<const MergeInput> segments, std::chrono::system_clock::time_point now,
                                        std::chrono::steady_clock::time_point steady = std::chrono::steady_clock::now());
  // From the next Merge on.
  void SetLimits(const SeriesLimits& limits);
  // The same. REQUIRES: it outlives this, or the next call.
  void SetNaming(const Naming& naming);
  // Of the last Merge.
  [[nodiscard]] const SeriesLeftOut& left_out() const { return plan_.left_out; }
  [[nodiscard]] const MergeIdentity& identity() const { return identity_; }

 private:
  // What the plan was made from.
  struct Basis {
    std::string segment_id;
    uint64_t generation;
    uint32_t ordinal;

    friend bool operator==(const Basis&, const Basis&) = default;
  };

  void Prepare(std::span<const MergeInput> segments);
  void FillCounters(const PlannedFamily& family, double* values);
  void FillDistributions(const PlannedFamily& family, double* values);
  void FillGauges(const PlannedFamily& family, double* values);
  void FillTimestamps(const PlannedFamily& family, double* values);
  void FillStreams(const PlannedFamily& family, double* values);
  void FillDropped(const PlannedFamily& family, double* values);
  [[nodiscard]] double MergeGauge(GaugePolicy policy, std::span<const Part> parts);
  // `whole` and the sum of terms_.
  [[nodiscard]] double Total(uint64_t whole);
  static bool Newer(const MergeInput& a, const MergeInput& b);

  const MergeIdentity identity_;
  const Naming* naming_;  // never null
  Diagnostics& diagnostics_;
  SeriesLimits limits_;
  std::vector<Basis> basis_;
  MergePlan plan_;
  std::span<const MergeInput> inputs_;  // during a Merge
  // Kept from series to series for their memory.
  std::vector<double> terms_;
  std::vector<double> negative_terms_;
  std::vector<uint64_t> counts_;
  ExactSum sum_;
  StreamAges stream_ages_;
};

}  // namespace persia::agent
