#include "health/rank_account.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/ends.h"

namespace persia::agent {
namespace {

using Nanoseconds = std::chrono::nanoseconds;

constexpr std::string_view kNames[kBuckets] = {"starting", "rendezvous", "data", "compute",  "sync", "checkpoint",
                                               "redone",   "hung",       "down", "unmarked", "other"};

Nanoseconds Part(Nanoseconds of, double part) {
  return std::clamp(Nanoseconds(std::llround(static_cast<double>(of.count()) * part)), Nanoseconds(0), of);
}

// Of training, in contrast to what comes before it.
bool IsOfSteps(Bucket bucket) {
  return bucket == Bucket::kData || bucket == Bucket::kCompute || bucket == Bucket::kOther || bucket == Bucket::kSync ||
         bucket == Bucket::kCheckpoint;
}

// Whether it has trained, in marked phases.
bool Trains(const RankAccount::Life& life) {
  return std::ranges::any_of(
      life.phases,
      [](const auto& phase) {
        const Bucket bucket = BucketOfPhase(phase.first);
        return bucket != Bucket::kOther && IsOfSteps(bucket) && phase.second > Nanoseconds(0);
      });
}

}  // namespace

std::string_view Name(Bucket bucket) { return kNames[static_cast<size_t>(bucket)]; }

Bucket BucketOfPhase(std::string_view phase) {
  if (phase == "init") return Bucket::kStarting;
  if (phase == "rendezvous") return Bucket::kRendezvous;
  if (phase == "data") return Bucket::kData;
  if (phase == "sync") return Bucket::kSync;
  if (phase == "checkpoint") return Bucket::kCheckpoint;
  if (phase == "other") return Bucket::kOther;
  return Bucket::kCompute;
}

void RankAccount::Begin(const Process& process, Nanoseconds now) {
  const bool goes_on = Runs() || IsOfLife(process);
  const bool finished = !goes_on && life.ending == Ending::kFinished;
  const bool failed = !goes_on && !finished;
  const Nanoseconds began = std::min(process.began, now);
  if (finished || (failed && life.ending == Ending::kLeftOut))
    until = std::max(until, began);
  else if (failed)
    Add(Bucket::kDown, std::max(began - until, Nanoseconds(0)));
  const Nanoseconds was_down = std::exchange(open_down, Nanoseconds(0));
  if (failed) {
    repair += was_down;
    ++restarts;
  }
  const bool was_unknown = !RedoneSteps();
  KeepSteps();
  uncounted = uncounted || (failed && !reached && !counted && Trains(life));
  if (finished) {
    is_unknown = was_unknown;
    reached.reset();
    counted.reset();
    counted_redone = 0;
    uncounted = false;
  }
  seen_alive_ = Nanoseconds(0);
  const bool repairs = failed || (goes_on && life.repairs);
  life = {.segment_id = process.segment_id,
          .id = process.id,
          .birth_unix_ns = process.birth_unix_ns,
          .restart_count = process.restart_count,
          .ending = Ending::kRuns,
          .ended = goes_on ? life.ended : began,  // `until` is later if the process could not be read until then
          .repairs = repairs};
}

void RankAccount::Continue(const Process& process, Nanoseconds now, Nanoseconds step) {
  life.restart_count = process.restart_count;
  TakeNumbers(process);
  Nanoseconds passed{0};  // in phases, since the last call
  for (const auto& [phase, time_in_it] : process.phases) passed += time_in_it;
  for (const auto& [phase, time_in_it] : life.phases) passed -= time_in_it;
  const bool marked = life.marks || process.clocks_until || passed > Nanoseconds(0);
  Nanoseconds to = life.ended;
  if (process.clocks_until) {
    to = *process.clocks_until;
  } else if (marked) {
    // Between two phases no clock runs, for a moment: the next collection sees the time. The exit stops all
    // clocks and stores its time, which is needed: no clock counts the time before the first phase.
    if (!process.alive) to = std::max(life.ended + passed, process.last_mark);
  } else if (process.alive) {
    const bool turns = process.hangs || process.has_changed != life.changes;
    to = turns || now - until >= step ? now : until;
  } else {
    to = seen_alive_;
  }
  to = std::min(to, now);  // also if the segment is corrupt
  const Nanoseconds looked = seen_alive_;
  if (process.alive) seen_alive_ = now;
  if (to > until) Divide(process, to - until, std::max(looked, process.recorded));
  if (marked && to > life.ended) life.phases = process.phases;
  life.marks = marked;
  life.changes = life.changes || process.has_changed;
  if (!process.runs_other) {
    life.ended = std::max(life.ended, to);
  } else {  // its clocks stand: the new program, or a process that it has started, is starting
    to = process.alive ? now : seen_alive_;
    if (to > until && (!process.alive || to - until >= step)) Add(Bucket::kStarting, to - until);
  }
  marks = marks || marked;
  CountSteps(process);
  if (!process.alive) {
    life.ending = Ending::kUntold;
    if (!process.last_exit.empty()) SetExit(process.last_exit);
  }
}

void RankAccount::Miss(Nanoseconds then) { Add(Bucket::kDown, std::max(then - until, Nanoseconds(0))); }

void RankAccount::LeaveOut(Nanoseconds then) {
  Miss(then);
  life.ending = Ending::kLeftOut;
}

void RankAccount::Release() {
  if (life.highest_step) highest = std::max(highest.value_or(0), *life.highest_step);
  life = {.ending = Ending::kFinished};
}

void RankAccount::SetExit(std::string_view exit) {
  if (life.ending == Ending::kUntold) life.ending = IsCleanExit(exit) ? Ending::kFinished : Ending::kFailed;
}

void RankAccount::Add(Bucket bucket, Nanoseconds by) {
  until += by;
  time[static_cast<size_t>(bucket)] += by;
  if (bucket == Bucket::kDown) open_down += by;
  if (life.repairs && (bucket == Bucket::kStarting || bucket == Bucket::kRedone)) repair += by;
}

// Divides `by` as the clocks do. The time before the first clock began is in no phase. If the process marks none and has
// changed, it has done so since `unchanged_until`.
void RankAccount::Divide(const Process& process, Nanoseconds by, Nanoseconds unchanged_until) {
  std::vector<std::pair<std::string_view, Nanoseconds>> parts;
  Nanoseconds sum{0};
  for (const auto& [phase, time_in_it] : process.phases) {
    const auto before = std::ranges::find(life.phases, phase, [](const auto& known) { return known.first; });
    const Nanoseconds part = time_in_it - (before == life.phases.end() ? Nanoseconds(0) : before->second);
    if (part <= Nanoseconds(0)) continue;
    parts.emplace_back(phase, part);
    sum += part;
  }
  if (sum > by) {  // the process ran before it became the rank
    const double share = static_cast<double>(by.count()) / static_cast<double>(sum.count());
    sum = Nanoseconds(0);
    for (auto& [phase, part] : parts) {
      part = std::min(Part(part, share), by - sum);
      sum += part;
    }
  }
  const double redone = RedonePart(process);
  const Nanoseconds rest = by - sum;
  if (rest > Nanoseconds(0)) {
    const bool in_phases = life.marks && !process.phase.empty();
    const bool changes_now = process.has_changed && !life.marks && parts.empty();
    const Nanoseconds starting = life.changes  ? Nanoseconds(0)
                                 : changes_now ? std::clamp(unchanged_until - until, Nanoseconds(0), rest)
                                               : rest;
    if (process.hangs || in_phases) {
      Add(process.hangs ? Bucket::kHung : BucketOf(process, process.phase), rest);
    } else {
      Add(Bucket::kStarting, starting);
      Add(Bucket::kUnmarked, rest - starting);
    }
  }
  for (const auto& [phase, part] : parts) {
    const Bucket bucket = BucketOf(process, phase);
    const Nanoseconds again = IsOfSteps(bucket) ? Part(part, redone) : Nanoseconds(0);
    Add(Bucket::kRedone, again);
    Add(bucket, part - again);
  }
}

Bucket RankAccount::BucketOf(const Process& process, std::string_view phase) const {
  if (process.hangs) return Bucket::kHung;
  const Bucket bucket = BucketOfPhase(phase);
  const bool prepares = (reached || counted) && !process.NumberedStep() && life.counted == 0;
  return prepares && bucket != Bucket::kRendezvous && bucket != Bucket::kCheckpoint ? Bucket::kStarting : bucket;
}

double RankAccount::RedonePart(const Process& process) const {
  const std::optional<double> step = process.NumberedStep();
  if (!reached || !step) return 0;
  const double from = life.highest_step.value_or(*process.first_step);
  const double to = std::max(from, *step);
  if (from > *reached) return 0;
  return to <= *reached ? 1 : (*reached + 1 - from) / (to - from + 1);
}

// With the first number, the counts of earlier processes are numbers.
void RankAccount::TakeNumbers(const Process& process) {
  if (!process.NumberedStep()) {
    life.counted = std::max(life.counted, process.CountedSteps());
    return;
  }
  life.counted = 0;
  if (counted) reached = std::max(reached.value_or(0), *std::exchange(counted, std::nullopt));
  redone_steps += std::exchange(counted_redone, 0);
}

// Those of the process that has ended.
void RankAccount::KeepSteps() {
  if (life.highest_step) reached = std::max(reached.value_or(0), *life.highest_step);
  if (reached) highest = std::max(highest.value_or(0), *reached);
  if (life.counted == 0) return;
  const double last = life.counted - 1;  // counted when it was done; the first one has the number 0
  if (reached || counted)
    counted_redone += static_cast<uint64_t>(std::min(last, std::max(reached.value_or(0), counted.value_or(0))) + 1);
  counted = std::max(counted.value_or(0), last);
}

std::optional<uint64_t> RankAccount::RedoneSteps() const {
  // Of a process that goes on from some step, after one that trained unknown ones.
  const bool follows_uncounted = uncounted && (life.first_step ? *life.first_step > 0 : life.counted == 0 && Trains(life));
  const bool counts_again = life.counted > 0 && (reached || counted);
  if (is_unknown || follows_uncounted || counts_again || counted_redone > 0) return std::nullopt;
  return redone_steps;
}

void RankAccount::CountSteps(const Process& process) {
  const std::optional<double> step = process.NumberedStep();
  if (!step) return;
  life.highest_step = std::max(life.highest_step.value_or(*step), *step);
  if (!life.first_step) life.first_step = process.first_step;
  if (!reached) return;
  const double steps = std::min(*life.highest_step, *reached) + 1 - *life.first_step;
  if (!(steps > static_cast<double>(life.redone_steps))) return;
  const auto counted = static_cast<uint64_t>(steps);
  redone_steps += counted - std::exchange(life.redone_steps, counted);
}

}  // namespace persia::agent
