// Names the ranks that the others wait for in a hang: those that stand still outside of `sync` while others of their role are
// in it.
//
//   AwaitedJudge judge;
//   judge.Look(processes, steady_now, {.hang_after = 60s, .is_stopped = ...});     // after each collection
//   for (const AwaitedJudge::Verdict& verdict : judge.verdicts()) ...
//
// A rank stands still if it has had no new phase and no new step for half of hang_after. Others count neither as waiting nor as
// awaited: ranks that train on in another group, a rank at work in several phases, one that has just been replaced. A role
// hangs if a rank stands still in `sync` for hang_after. Then the ranks that stand still in `sync` wait for
//
//   - those that stand still outside of `sync`, and those that a signal has stopped in it; else
//   - those whose step differs from that of most of them: they left a collective out, or take part in another one.
//
// If there is neither, no rank is named: the fault is between them, or with a rank at work. A rank that is named may be at work
// in one long phase, in an evaluation, for example: the others wait for it as well. hang_after follows the job's own pauses
// (hang_judge.h). A verdict ends when the rank moves or ends, or when no other waits for so long any more.
//
// A judge that sees a rank for the first time takes its step for as old as its phase.
//
// Thread safety: none; used by the collector thread alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "health/rank.h"
#include "model/process.h"

namespace persia::agent {

class AwaitedJudge {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Settings {
    Milliseconds hang_after{0};                           // 0: nothing is judged
    std::function<bool(const Process&)> is_stopped = {};  // by a signal; none: not known
  };
  struct Verdict {
    RankProcessKey rank;
    Identity identity;
    std::string phase;            // "stopped" if it is in `sync` and a signal has stopped it
    bool is_stopped = false;      // by a signal, in whichever phase
    Milliseconds in_phase{0};     // how long the rank has been there, in this step
    std::optional<double> step;   // in which it is
    Milliseconds waited{0};       // for how long the others have been in `sync`
    size_t waiting = 0;           // how many others
    std::optional<double> steps;  // in which the others are, if that is why the rank is named
  };

  void Look(std::span<const Process> processes, TimePoint now, const Settings& settings);

  // Of the last Look: the rank that is longest in its phase first, at most kMostNamed of a role.
  [[nodiscard]] const std::vector<Verdict>& verdicts() const { return verdicts_; }

  // For how long a rank of the last Look has been in its phase, in its present step.
  [[nodiscard]] Milliseconds Still(const Process& process) const;

  static constexpr size_t kMostNamed = 8;

 private:
  // Where a rank was in a Look.
  struct Place {
    std::optional<double> step;
    Milliseconds stepped_at{0};  // the time in the phase at which the step was found to be new
  };
  // A rank that stands still.
  struct Member {
    const Process* process;
    Milliseconds still;
  };
  using Members = std::vector<Member>;

  // The step of most of them; of two that are equally frequent, the lower one. None: they do not number their steps.
  [[nodiscard]] static std::optional<double> StepOfMost(const Members& members);
  [[nodiscard]] Place PlaceOf(const Process& process, Milliseconds since_look) const;
  void JudgeRole(Members& members, const Settings& settings);

  std::vector<Verdict> verdicts_;
  std::map<RankProcessKey, Place> places_;
  TimePoint last_look_{};
};

// "trainer rep_3 hangs in data since step 812, 94 s; 3 others wait in sync. Look at: ..."
[[nodiscard]] std::string SentenceOf(const AwaitedJudge::Verdict& verdict);

}  // namespace persia::agent
