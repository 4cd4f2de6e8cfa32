// The time of one rank, each nanosecond in one bucket, and the steps that it trained again.
//
//   RankAccount account;
//   account.Begin(process, now);             // the first process of the rank, or a successor
//   account.Continue(process, now);          // in each collection until the process has ended
//   account.Miss(now);                       // while it has ended by a failure, and no successor has begun
//   account.LeaveOut(then);                  // the launcher has restarted the others without it, or the command has ended:
//                                            // it stands still
//   account.Release();                       // its process is another rank now: it stands still
//   account.RedoneSteps();                   // none: unknown
//
// The clocks of a process (persia/metrics/phase.h) measure its phases, also while no agent reads them. So the buckets are exact
// whenever collections are made: `time` is always that from the begin of the first process up to `until`, without the times
// between the end of a process that finished and the begin of the next, and those in which it stands still.
//
// A process that replaces its program by exec goes on as the rank. After one that finished, the next is a new program: it
// redoes nothing.
//
// A program may number its steps only in processes that continue from a checkpoint, and count them in the others. Once a
// process of the program has given a number, the counts of those before it are taken as numbers from 0 on. Before that it is
// not known which steps a process trains again: no time is `redone`, and the number of redone steps is unknown.
//
//   starting     from the process's start until its first phase; of one that marks none, until the look before the first that
//                finds its metrics changed; and in the phase init. Of a process that replaces another one: until its first
//                step, except in rendezvous and checkpoint
//   rendezvous, data, sync, checkpoint    in the phase of this name
//   compute      in any other phase
//   other        outside of all phases, after the first one
//   redone       data, compute, other, sync and checkpoint of steps up to the highest one that the rank had reached before
//   hung         while the process, or the job, is judged to hang (hang_judge.h)
//   down         between the end of a process that failed and the start of its successor
//   unmarked     of a process that changes its metrics, but marks no phases
//
// Thread safety: plain data; used by the collector thread alone.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/process.h"

namespace persia::agent {

enum class Bucket : uint8_t {
  kStarting,
  kRendezvous,
  kData,
  kCompute,
  kSync,
  kCheckpoint,
  kRedone,
  kHung,
  kDown,
  kUnmarked,
  kOther,
};
inline constexpr size_t kBuckets = 11;
using BucketTimes = std::array<std::chrono::nanoseconds, kBuckets>;
// "starting", ...
[[nodiscard]] std::string_view Name(Bucket bucket);
[[nodiscard]] Bucket BucketOfPhase(std::string_view phase);

struct RankAccount {
  using Nanoseconds = std::chrono::nanoseconds;

  enum class Ending : uint8_t { kRuns, kUntold, kFinished, kFailed, kLeftOut };
  // The process that is the rank now, or was it last; without a segment: none has been it, or that one is another rank now.
  struct Life {
    std::string segment_id = {};
    ProcessId id = {};
    uint64_t birth_unix_ns = 0;
    uint32_t restart_count = 0;
    Ending ending = Ending::kRuns;
    Nanoseconds ended{0};  // found to have ended, or last known to run
    bool marks = false;    // it has marked a phase
    bool changes = false;  // its metrics have changed
    bool repairs = false;  // it has replaced one that had failed
    double counted = 0;    // steps, while it has numbered none
    std::optional<double> first_step = {};
    std::optional<double> highest_step = {};
    uint64_t redone_steps = 0;
    std::vector<std::pair<std::string, Nanoseconds>> phases = {};  // the times that are in the buckets
  };

  Nanoseconds until = Nanoseconds::min();
  BucketTimes time{};
  uint64_t redone_steps = 0;      // by numbers
  uint64_t restarts = 0;          // processes that replaced one that had failed
  Nanoseconds repair{0};          // time in down, starting and redone that belongs to these restarts
  Nanoseconds open_down{0};       // that in down since the last process failed
  bool marks = false;             // a process of the rank has marked a phase
  std::optional<double> reached;  // the highest step before the last process, of its program
  std::optional<double> highest;  // that of all programs
  std::optional<double> counted;  // as `reached`, by the counts of processes that gave no numbers
  uint64_t counted_redone = 0;    // by these counts
  bool uncounted = false;         // a process failed that had trained, before the program gave either
  bool is_unknown = false;        // the redone steps of an earlier program
  Life life{.ending = Ending::kFinished};

  // Orders the processes of a rank by their start.
  [[nodiscard]] static auto Order(const Process& process) {
    return std::tuple(process.id.start_ticks, process.birth_unix_ns, process.segment_id);
  }
  [[nodiscard]] bool IsAfterLife(const Process& process) const {
    return Order(process) > std::tuple(life.id.start_ticks, life.birth_unix_ns, life.segment_id);
  }
  [[nodiscard]] static bool IsKnown(const ProcessId& id) { return id.pid != 0 && id.start_ticks != 0; }
  // Whether it is the process of the life, also with a later program.
  [[nodiscard]] bool IsOfLife(const Process& process) const {
    return process.segment_id == life.segment_id || (IsKnown(life.id) && process.id == life.id);
  }
  [[nodiscard]] bool Runs() const { return life.ending == Ending::kRuns; }
  // The steps that were trained again. None: unknown.
  [[nodiscard]] std::optional<uint64_t> RedoneSteps() const;

  // `process` is the rank from its start on, or from `until`, if that is later.
  void Begin(const Process& process, Nanoseconds now);
  // The time of a process without clocks goes on in steps of `step` at least, so that a job that does nothing writes little.
  // REQUIRES: Begin was called with this process.
  void Continue(const Process& process, Nanoseconds now, Nanoseconds step = Nanoseconds(0));
  // The last process has failed, and is missed until then.
  void Miss(Nanoseconds then);
  // The last process has failed, and is missed until then: since then, the others run without it, or the command has ended.
  void LeaveOut(Nanoseconds then);
  // The last process is another rank now. It has not failed.
  void Release();
  // The process has gone without a trace: with the machine, for example.
  void Lose() { life.ending = Ending::kFailed; }
  // How the last process ended, if that was not known before.
  void SetExit(std::string_view exit);

 private:
  void Add(Bucket bucket, Nanoseconds by);
  void Divide(const Process& process, Nanoseconds by, Nanoseconds unchanged_until);
  [[nodiscard]] Bucket BucketOf(const Process& process, std::string_view phase) const;
  // Of the steps since the last call, the part that was trained before.
  [[nodiscard]] double RedonePart(const Process& process) const;
  void TakeNumbers(const Process& process);
  void CountSteps(const Process& process);
  void KeepSteps();

  Nanoseconds seen_alive_{0};  // by this agent
};

}  // namespace persia::agent
