// Names the ranks that the others wait for in a hang: those that are not in `sync` while others of their role are.
//
//   AwaitedJudge judge;
//   judge.Look(processes, {.hang_after = 60s, .is_stopped = ...});     // after each collection
//   for (const AwaitedJudge::Verdict& verdict : judge.verdicts()) ...
//
// A role hangs if a rank has been in `sync` for hang_after, and all others that are in `sync` for at least half of that. Then
// the others wait for
//
//   - the ranks that are not in `sync`; else
//   - those that a signal has stopped; else
//   - those whose step differs from that of most ranks: they left a collective out, or take part in another one.
//
// If all ranks wait in the same step, and none is stopped, no rank is named: the fault is between them. A rank that is not in
// `sync` may be at work, in an evaluation, for example: it is named as well, since the others wait for it. hang_after follows
// the job's own pauses (hang_judge.h). A verdict ends when the rank is in `sync`, ends, or goes on with the others.
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
#include "model/worker_process.h"

namespace persia::agent {

class AwaitedJudge {
 public:
  using Milliseconds = std::chrono::milliseconds;

  struct Settings {
    Milliseconds hang_after{0};                                 // 0: nothing is judged
    std::function<bool(const WorkerProcess&)> is_stopped = {};  // by a signal; none: not known
  };
  struct Verdict {
    RankProcessKey rank;
    Identity identity;
    std::string phase;            // "stopped" if it is in `sync` and a signal has stopped it
    Milliseconds in_phase{0};     // how long the rank has been there
    std::optional<double> step;   // in which it is
    Milliseconds waited{0};       // for how long the others have been in `sync`
    size_t waiting = 0;           // how many others
    std::optional<double> steps;  // in which the others are, if that is why the rank is named
  };

  void Look(std::span<const WorkerProcess> processes, const Settings& settings);

  // Of the last Look: the rank that is longest in its phase first, at most kMostNamed of a role.
  [[nodiscard]] const std::vector<Verdict>& verdicts() const { return verdicts_; }

  static constexpr size_t kMostNamed = 8;

 private:
  using Members = std::vector<const WorkerProcess*>;

  void JudgeRole(const Members& waiting, const Members& others, const Settings& settings);
  void Name(const WorkerProcess& process, Milliseconds waited, size_t waiting, const std::string& phase,
            std::optional<double> steps = std::nullopt);

  std::vector<Verdict> verdicts_;
  std::vector<Verdict> before_;
};

// "trainer rep_3: in data since step 812, 94 s; 3 others wait in sync"
[[nodiscard]] std::string SentenceOf(const AwaitedJudge::Verdict& verdict);

}  // namespace persia::agent
