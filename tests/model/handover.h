// Histories of several agents of one job: who collects, who waits for its turn, and who ends the run; and the check that no
// count is lost, and none counts twice.
//
//   const HandoverConfig config = HandoverConfigOf(seed);
//   std::vector<Handover> steps = RandomHandovers(seed);
//   std::string wrong = Check(steps, config);       // empty: all is right
//   Shrink(steps, config);  Print(steps, config)
//
// The agents have the real directory, lock, run and state, in files of a temporary directory. Between any two calls on files an
// agent may be suspended, while the others go on, or killed. Thread safety: several threads, each with a directory of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace persia::agent::model {

// Up to three agents at a time, in the places that `a` gives.
struct Handover {
  enum class Do : uint8_t {
    kExec,     // an `exec` is prepared, if the place is free
    kRun,      // a `run` is started, if the place is free
    kGo,       // the supervisor or the agent goes on: by `b` calls on files, or if that is 0 until it waits
    kCount,    // a process of the job counts `b`; if none lives, one is started
    kEnd,      // that process ends
    kLeave,    // the command ends, by an error if `b` is odd; a `run` ends by a signal if `b` is odd, else because it is idle
    kKill,     // the agent is killed
    kKillAll,  // the supervisor, too; and the command, if `b` is even
    kLast = kKillAll,
  } what = Do::kExec;
  uint32_t a = 0;
  uint32_t b = 0;
};

struct HandoverConfig {
  bool has_state_dir = false;  // and each agent has its own replica
};

HandoverConfig HandoverConfigOf(uint64_t seed);
std::vector<Handover> RandomHandovers(uint64_t seed);
// The first contradiction; empty: none.
std::string Check(const std::vector<Handover>& steps, HandoverConfig config);
// Removes steps and lowers numbers as long as something is wrong.
void Shrink(std::vector<Handover>& steps, HandoverConfig config);
// As the lines of a test case.
std::string Print(const std::vector<Handover>& steps, HandoverConfig config);

}  // namespace persia::agent::model
