// Tells which ranks stand still: those that make no step for long against their own steps. That is told long before a hang is
// judged (hang_judge.h), and is no verdict: ranks that evaluate for the first time stand still, too.
//
//   StandstillJudge judge;
//   judge.Look(processes, steady_now, hang_after);   // after each collection
//   for (const StandstillJudge::Role& role : judge.roles()) ...
//
// A rank moves when the number of its step changes. If no rank of the job numbers its steps, a rank moves when a metric of it
// changes. A rank that has moved kMovesToJudge times stands still if it has not moved for kLeast, nor for kPauses times its
// longest pause between two moves in the last quarter or half an hour. So steps that take long are no standstill, and neither
// are the first ones. If hangs are judged after a shorter time, so are standstills.
//
// Thread safety: none; used by the collector thread alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "health/rank.h"
#include "model/process.h"

namespace persia::agent {

class StandstillJudge {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using TimePoint = std::chrono::steady_clock::time_point;

  static constexpr int kMovesToJudge = 3;
  static constexpr Milliseconds kLeast{15'000};
  static constexpr int kPauses = 2;

  // No rank of it moves.
  struct Role {
    std::string role;
    Milliseconds unmoved{0};  // since the last move of any rank
  };
  // It does not move, and others of its role do.
  struct Rank {
    Identity identity;
    Milliseconds unmoved{0};
  };

  // `hang_after`: 0: no hang is judged.
  void Look(std::span<const Process> processes, TimePoint now, Milliseconds hang_after);

  // Of the last Look.
  [[nodiscard]] const std::vector<Role>& roles() const { return roles_; }
  // Only of ranks that number their steps: in many jobs, only rank 0 records values.
  [[nodiscard]] const std::vector<Rank>& ranks() const { return ranks_; }
  // Whether there are such roles, and no other ones.
  [[nodiscard]] bool job_stands() const { return job_stands_; }
  [[nodiscard]] bool by_steps() const { return by_steps_; }

 private:
  struct Track {
    double place = 0;  // the step, or the count of changes
    TimePoint moved_at{};
    int moves = 0;
    // Of the pauses, in this window and in the one before it.
    Milliseconds longest{0};
    Milliseconds longest_before{0};
    TimePoint window_began{};
    uint64_t look = 0;  // the last one with this process; 0: it is new
  };

  void Update(Track& track, double place, TimePoint now) const;

  static constexpr Milliseconds kWindow = std::chrono::minutes(15);

  std::map<RankProcessKey, Track> tracks_;
  std::vector<Role> roles_;
  std::vector<Rank> ranks_;
  bool by_steps_ = false;
  bool job_stands_ = false;
  uint64_t looks_ = 0;
};

}  // namespace persia::agent
