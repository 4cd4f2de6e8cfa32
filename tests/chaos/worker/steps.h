// The steps of a worker that is a rank: it marks its phases, numbers its steps, saves a checkpoint now and then, and goes on
// from the last one when it starts again.
#pragma once

#include <persia/metrics/phase.h>
#include <atomic>
#include <cstdint>
#include <string>

#include "ledger.h"

namespace chaos {

class Steps {
 public:
  // The checkpoint is "<directory>/<role>-<replica>.checkpoint".
  Steps(const Ledger& ledger, const std::string& directory);
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // One more step, which `trains`, and then `waits` for others.
  template <class Train, class Wait>
  void Step(const Train& train, const Wait& wait) {
    Tell();
    {
      const persia::metrics::InPhase in(train_);
      train();
    }
    const persia::metrics::InPhase in(sync_);
    wait();
  }

 private:
  void Tell();

  LedgerHeader& header_;
  std::atomic<uint64_t>* checkpoint_;  // the step to go on with
  uint64_t next_ = 0;
  const persia::metrics::Phase train_{"forward"};
  const persia::metrics::Phase sync_{"sync"};
  const persia::metrics::Phase saves_{"checkpoint"};
};

// Writes the end of this process to the ledger, which must outlive it: after what the library does at the exit, if called
// before its first use for a phase.
void RecordExit(const Ledger& ledger);

// In nanoseconds of CLOCK_MONOTONIC: the time, and when this process started, to a hundredth of a second.
uint64_t NowNs();
uint64_t StartedNs();

}  // namespace chaos
