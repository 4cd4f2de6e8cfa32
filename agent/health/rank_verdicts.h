// Names the ranks that the others wait for, at each step or in a hang, and since when, by the phases of the ranks; and the
// ranks that stand still.
//
//   RankVerdicts verdicts;
//   verdicts.Look(processes, {.steady = ..., .wall = ..., ...});          // after each collection
//   std::shared_ptr<const RankReport> report = verdicts.report();
//   std::vector<JobEvent> events = verdicts.TakeEvents();
//
// straggler.h, awaited.h and standstill.h decide. The begin and the end of each verdict are an event of type "persia.agent" and
// a line in the log: straggler_found and straggler_gone, rank_awaited and rank_caught_up. If a verdict ends because the rank,
// or each one that may wait for it, has ended, nothing is said: their ends are reported (job_health.h). Thread safety: none;
// used by the collector thread alone. A report does not change.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "health/awaited.h"
#include "health/standstill.h"
#include "health/straggler.h"
#include "model/events.h"
#include "model/process.h"

namespace persia::agent {

struct RankReport {
  using TimePoint = std::chrono::system_clock::time_point;
  struct Straggler {
    StragglerJudge::Verdict verdict;
    TimePoint since;  // of the verdict
  };
  struct Awaited {
    AwaitedJudge::Verdict verdict;
    TimePoint since;  // of the others' wait
  };
  // A role of which no rank moves, and where its ranks are: "trainer rep_3 has been in data for 94 s; 3 wait in sync", or
  // "each rank is in eval"; empty: not known.
  struct Standstill {
    std::string role;
    std::chrono::milliseconds unmoved{0};
    std::string where;
  };
  // A rank that does not move while others of its role do.
  struct Standing {
    Identity identity;
    std::chrono::milliseconds unmoved{0};
    TimePoint since;
  };
  // The rank that was the straggler for longest since this agent started, by rank and phase, and its last verdict.
  struct Slowest {
    StragglerJudge::Verdict verdict;
    std::chrono::milliseconds time{0};
  };
  // The phase in which a rank is, and for how long in its present step.
  struct Present {
    Identity identity;
    std::string phase;
    std::chrono::milliseconds in_phase{0};
  };

  std::vector<StragglerJudge::Rank> ranks = {};
  std::vector<StragglerJudge::Judged> judged = {};
  std::vector<Present> present = {};
  std::vector<Straggler> stragglers = {};
  std::vector<Awaited> awaited = {};
  std::vector<Standstill> standstills = {};
  std::vector<Standing> standing = {};
  bool job_stands = false;     // all roles do
  bool numbers_steps = false;  // else a rank moves when its metrics change
  std::optional<Slowest> slowest = {};

  // Whether a rank of the role stands still or hangs: then nothing that was measured of its steps is true now.
  [[nodiscard]] bool StandsStill(const std::string& role) const;
};

// "trainer rep_3: 120 ms longer in data than the others in each step of 500 ms; 3 others wait for it in sync"
[[nodiscard]] std::string SentenceOf(const StragglerJudge::Verdict& verdict);

// "trainer rep_3 was the slowest rank: for 245 s, it was 120 ms longer in data than the others in each step of 500 ms"
[[nodiscard]] std::string SentenceOf(const RankReport::Slowest& slowest);

class RankVerdicts {
 public:
  using TimePoint = RankReport::TimePoint;

  struct Moment {
    StragglerJudge::TimePoint steady{};
    TimePoint wall{};
    std::chrono::milliseconds interval{1000};             // of collections
    std::chrono::milliseconds hang_after{0};              // 0: no hang is judged
    std::function<bool(const Process&)> is_stopped = {};  // by a signal; none: not known
  };

  void Look(std::span<const Process> processes, const Moment& moment);

  // Of the last Look. Never null.
  [[nodiscard]] std::shared_ptr<const RankReport> report() const { return report_; }
  [[nodiscard]] const StragglerJudge& straggler_judge() const { return stragglers_; }
  // Those since the last call.
  [[nodiscard]] std::vector<JobEvent> TakeEvents() { return std::exchange(events_, {}); }

 private:
  void LookForStragglers(std::span<const Process> processes, RankReport& report);
  void LookForHangs(std::span<const Process> processes, RankReport& report);
  void LookForStandstills(std::span<const Process> processes, const Moment& moment, RankReport& report);
  void CountStragglers(const Moment& moment, RankReport& report);
  void Report(LogLevel level, const char* name, const Identity& identity, const std::string& phase, const std::string& text);

  StragglerJudge stragglers_;
  AwaitedJudge awaited_;
  StandstillJudge standstills_;
  std::map<std::pair<Identity, std::string>, RankReport::Slowest> slow_times_;  // by rank and phase
  StragglerJudge::TimePoint last_look_{};
  TimePoint now_;
  std::shared_ptr<const RankReport> report_ = std::make_shared<RankReport>();
  std::vector<JobEvent> events_;
};

}  // namespace persia::agent
