// Where the job's time goes.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "health/rank_account.h"
#include "model/process.h"
#include "model/process_id.h"

namespace persia::agent {

// Where the time of the ranks has gone, and what follows from it: the goodput, and the mean time to repair.
//
// An agent counts in whole nanoseconds, so that its sums are exact (GoodputReport). The summary of a run, which may be of any
// agent, has seconds (GoodputInSeconds).
//
// Thread safety: plain data.
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

// Where the job's time goes: the accounts of all ranks (rank_account.h), and what follows from them.
//
//   Goodput goodput;
//   goodput.Restore(*DecodeGoodput(saved), clocks);     // of a former agent
//   goodput.Look(processes, folded, {}, {.now = ...});          // in each collection, before the ledger folds the ended
//   processes std::string state = EncodeGoodput(goodput.accounts(), clocks); goodput.Saved(); // it is on disk, together with
//   these folds std::shared_ptr<const GoodputReport> report = goodput.report();
//
// A report has only what is on disk, or what the next agent reads again from the processes' segments. So no number falls if
// the agent is killed at any moment, and none counts twice.
//
// Of the processes of a rank (role, replica), one is the rank: the first one, then the first one that starts after it has
// ended. Others run beside it, such as data loaders. One that marks phases or steps takes the place of one that does not, such
// as a launcher. A process that was forked by one of its rank is the rank only if it numbers steps. One that was another rank
// until now is the rank if that has no running process. Launchers (model/process.h) are no ranks. Thread safety: none;
// used by the collector thread alone. A report does not change.
using RankAccounts = std::map<RankId, RankAccount>;

// The boot of the machine, and the wall time at which CLOCK_MONOTONIC was 0 in it.
struct MachineClocks {
  std::string boot_id = {};
  std::chrono::nanoseconds zero{0};
  std::chrono::nanoseconds now = std::chrono::nanoseconds::max();  // of CLOCK_MONOTONIC: no saved moment is later
};

class Goodput {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  // Beyond it, further ranks are not counted.
  static constexpr size_t kMaxRanks = 10'000;

  struct Moment {
    Nanoseconds now{0};                       // of CLOCK_MONOTONIC, before the processes were read
    std::optional<Nanoseconds> over_at = {};  // the command that is run has ended then
    Nanoseconds step{0};                      // of the time of processes that mark no phases
  };

  // `processes`: all that run; `folded`: those that have ended since the last call. One that ended may be given again. Those
  // without a segment are not counted.
  void Look(std::span<const Process> processes, std::span<const Process> folded, std::span<const LateExit> exits,
            const Moment& moment);

  [[nodiscard]] const RankAccounts& accounts() const { return accounts_; }
  // REQUIRES: before the first Look.
  void Restore(RankAccounts accounts);
  // The accounts of the last Look are on disk, or need not be.
  void Saved();
  // As of the last Saved. Never null.
  [[nodiscard]] std::shared_ptr<const GoodputReport> report() const { return report_; }

 private:
  using ByRank = std::map<RankId, std::vector<const Process*>>;

  // Releases the accounts whose process is another rank now. Returns the ids of these processes.
  std::set<std::string> ReleaseMoved(const ByRank& processes);
  void CountRank(RankAccount& account, std::vector<const Process*>& candidates, const std::set<std::string>& moved,
                 const Moment& moment);

  RankAccounts accounts_;
  std::shared_ptr<const GoodputReport> report_ = std::make_shared<GoodputReport>();
};

// For the state (../ledger/state_format.md).
[[nodiscard]] std::string EncodeGoodput(const RankAccounts& accounts, const MachineClocks& clocks);
// None: the bytes are malformed. After a reboot, the moments are moved to the clock of this one.
[[nodiscard]] std::optional<RankAccounts> DecodeGoodput(std::string_view bytes, const MachineClocks& clocks);

}  // namespace persia::agent
