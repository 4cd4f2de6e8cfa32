// Histories: the steps of a job, its processes, its agents and its disks; and the check that every count is counted once.
//
//   std::vector<Step> steps = RandomHistory(seed);
//   std::string wrong = Check(steps, config);       // empty: all is right
//   Shrink(steps, config);  Print(steps)
//
// The agent is the real one, from the directory of segments to the snapshot; the directory, the state's file and the clock are
// in memory. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace persia::agent::model {

enum class Do : uint8_t {
  kStart,     // a process; `a` is odd: with a large segment; half of `a`: its identity
  kCount,     // process `a` counts `b` of one thing, which depends on `b`
  kSet,       // process `a` sets its gauges to `b`
  kRemove,    // process `a` removes a series, or has it again
  kPhase,     // process `a` enters a phase, or leaves it
  kDie,       // process `a`
  kAgent,     // starts an agent, if none runs; `a` is odd: it refuses large segments
  kCollect,   // by the agent; at the operation on files `a`, if `b` is 1, it is killed; if 2, the last process counts and dies;
              // if 3 to 8, a power cut ends it, too. At the load from segments `a`, if `b` is 9, the last process counts;
              // if 10, it dies, too; if 11, it exits, too; if 12, it
              // removes a series or has it again
  kSoon,      // as kCollect, so soon that nothing that failed is tried again
  kStop,      // the agent, in order
  kKill,      // the agent
  kWait,      // `a` times 100 s
  kDisk,      // the state's disk is full, or no longer
  kState,     // the state's file cannot be read, or can again
  kOpen,      // no file can be opened, or all can again
  kList,      // the directory cannot be listed, or can again
  kReadOnly,  // no file of the directory can be removed, or all can again
  kBreak,     // the file of process `a` cannot be opened, or can again
  kLose,      // the directory is emptied; `a` is odd: the processes live on
  kReturn,    // lost files exist again
  kDamage,    // the state is cut off, if `a` is odd, or a bit of it is flipped, at a place that `a` and `b` give
  kClock,     // the wall clock is set by `b` times 100 s, back if `a` is odd
  kLimit,     // the agent refuses large segments, or no longer
  kNewRun,    // the run ends, and so do its processes; the next agent begins another
  kLast = kNewRun,
};

// Of a collection's `b`: there are so many, and those from the first one on are of loads.
constexpr uint32_t kFirstAtLoad = 9;
constexpr uint32_t kCollections = 13;

struct Step {
  Do what = Do::kStart;
  uint32_t a = 0;
  uint32_t b = 0;
};

struct Config {
  // Whether the state outlives the segments, and so has the values of living processes, too.
  bool state_elsewhere = true;
  // Whether a checkpoint follows as soon as the state has twice the size of the last one, even if that is small.
  bool small_checkpoints = false;
  // Whether an instance without a process is not exposed after the time to live.
  bool hides_ended = false;
  // How many series are exposed.
  size_t max_series = 100;
  // Whether a supervisor reaps the processes, so that the agent waits for what it tells.
  bool supervised = false;
};

// The configuration that a history is checked with.
Config ConfigOf(uint64_t seed);
std::vector<Step> RandomHistory(uint64_t seed);
// The first contradiction; empty: none.
std::string Check(const std::vector<Step>& steps, const Config& config);
// Removes steps and lowers numbers as long as something is wrong.
void Shrink(std::vector<Step>& steps, const Config& config);
// As the lines of a test case.
std::string Print(const std::vector<Step>& steps, const Config& config);

}  // namespace persia::agent::model
