// Names the rank that the others wait for at each step: the straggler of a role.
//
//   StragglerJudge judge;
//   judge.Look(processes, steady_now, interval);       // after each collection
//   for (const StragglerJudge::Verdict& verdict : judge.verdicts()) ...
//
// Ranks that meet in a collective at each step have steps of the same length, whichever rank is slow. They differ in what the
// step consists of: a rank that computes for longer waits less in the phase `sync`. So the straggler is the rank that waits
// least, what it does for longer than the others is its phase, and the time that the others wait longer is what the job loses.
//
// The time is cut into chunks of at least kStepsOfChunk steps, in which a rank was in `sync`. A rank's part of a chunk is
// compared with the median of the other ranks in the same chunk; all are read in one collection, so that no common clock is
// needed, and a step that a chunk cuts in two is cut for all of them. The lead is the median over the last kChunks chunks, so
// that a single long step, such as a checkpoint of rank 0, is no evidence. A verdict needs
//
//   - kLeastChunks chunks, in which all ranks of the role took the same steps;
//   - a lead of kLeastShare of the time, of some times its own standard error over the chunks (Demand), and of the difference
//     between the other ranks: so the threshold follows the job's own noise;
//   - a lead in all chunks, or all but one, since a rank that is as fast as the others leads in half of them;
//   - all of this for kLooksToBegin chunks in a row, of the same rank.
//
// Chunks of one interval name a rank that is clearly slower soon. More is asked of them: there are more of them, and noise that
// lasts for seconds is not averaged in them. Chunks of kLongChunk intervals, beside them, name a rank that is slower by little,
// or in some of its steps.
//
// A verdict ends when the rank's lead in the newest chunks is below half of what a verdict needs, for kLooksToEnd chunks in a
// row, and when the ranks of the role change: nothing is carried over to a rank that started again.
//
// Ranks that give no step number, or never are in `sync`, are not judged. Thread safety: none; the collector thread alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "health/rank.h"
#include "model/process.h"

namespace persia::agent {

class StragglerJudge {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Milliseconds = std::chrono::milliseconds;

  static constexpr double kStepsOfChunk = 4;
  static constexpr int kLongChunk = 10;
  static constexpr size_t kChunks = 12;
  static constexpr size_t kLeastChunks = 10;
  static constexpr double kLeastShare = 0.04;
  static constexpr int kLooksToBegin = 3;
  static constexpr int kLooksToEnd = 2;
  // Chunks after which a straggler from the first step on has a verdict.
  static constexpr size_t kNeeded = kLeastChunks + static_cast<size_t>(kLooksToBegin) - 1;
  static_assert(kNeeded <= kChunks);

  // What a step of a rank consists of, as of the last chunks.
  struct Rank {
    Identity identity;
    std::map<std::string, double> seconds_per_step;  // by phase, with `sync`

    [[nodiscard]] double Sync() const;
  };
  struct Verdict {
    Identity identity;
    std::string phase;            // in which it is longer than the others
    double seconds_per_step = 0;  // that the job loses
    double step_seconds = 0;      // the length of a step
    size_t waiting = 0;           // the other ranks of its role

    friend bool operator==(const Verdict&, const Verdict&) = default;
  };
  // How far the judgement of a role is: "equally fast" is known once `measured` has reached `needed` and nothing is undecided.
  struct Judged {
    std::string role;
    size_t ranks = 0;
    size_t measured = 0;        // steps
    size_t needed = 0;          // steps, at the present pace
    bool is_undecided = false;  // a rank leads on the whole, but not in enough chunks
  };
  // How the last chunks of a role compare: of the rank that waits least. For tests and for what the proofs print.
  struct Evidence {
    double lead = 0;    // share of the time by which it waits less than the median of the others
    double needed = 0;  // for a verdict
  };

  // `interval`: of collections. Looks between them do not make shorter chunks.
  void Look(std::span<const Process> processes, TimePoint now, Milliseconds interval);

  // Of the last Look. Of roles with a single rank, too: another agent may have the others.
  [[nodiscard]] const std::vector<Rank>& ranks() const { return ranks_; }
  // At most one of each role.
  [[nodiscard]] const std::vector<Verdict>& verdicts() const { return verdicts_; }
  // Of each role.
  [[nodiscard]] std::vector<Judged> judged() const;
  // By role, of the chunks of one interval; none: there are too few.
  [[nodiscard]] std::optional<Evidence> EvidenceOf(const std::string& role) const;

 private:
  struct Demand {
    double standard_errors = 7;
    size_t exceptions = 1;  // chunks without a lead
  };
  // Shares of the time by phase, as numbered in Role::phases, of each rank.
  using Shares = std::vector<double>;
  struct Chunk {
    double steps = 0;
    double seconds_per_step = 0;
    std::vector<Shares> ranks;
  };
  // The last chunks of one length.
  struct Window {
    Demand demand = {};
    TimePoint began = {};                           // of the chunk that is not complete
    std::vector<double> steps = {};                 // of each rank, then
    std::vector<std::vector<double>> seconds = {};  // of each rank and phase, then
    std::deque<Chunk> chunks = {};
    std::optional<size_t> candidate = {};  // among the members
    int looks = 0;                         // chunks in a row that speak for it, or against its verdict
    bool is_judged_slow = false;           // the candidate
    bool is_undecided = false;             // the rank that waits least leads on the whole, but has no verdict
    std::string phase = {};
    std::optional<Evidence> evidence = {};

    [[nodiscard]] double StepSeconds() const;
  };
  struct Role {
    std::vector<RankProcessKey> members = {};
    std::vector<std::string> phases = {};
    Window brief = {.demand = {.standard_errors = 12, .exceptions = 0}};  // chunks of one interval
    Window lengthy = {};                                                  // of kLongChunk intervals
    uint64_t look = 0;

    // That decides; null: no rank is slow.
    [[nodiscard]] const Window* Ruling() const {
      if (brief.is_judged_slow) return &brief;
      return lengthy.is_judged_slow ? &lengthy : nullptr;
    }
  };
  // The ranks of a role in a Look.
  using Members = std::vector<const Process*>;

  static void Restart(Role& role, const Members& members, TimePoint now);
  // Whether the chunks are other ones than before.
  static bool Measure(Role& role, const Members& members, TimePoint now, Milliseconds interval);
  static void BeginChunk(Role& role, Window& window, const Members& members, TimePoint now);
  static bool AddChunk(Role& role, Window& window, const Members& members, TimePoint now, Milliseconds least);
  static void Judge(Role& role, Window& window);
  static std::string SlowPhase(const Role& role, const Window& window, size_t rank);
  void Show(const Role& role, const Members& members);

  std::map<std::string, Role> roles_;
  uint64_t looks_ = 0;
  std::vector<Rank> ranks_;
  std::vector<Verdict> verdicts_;
};

}  // namespace persia::agent
