// A worker of the chaos test: counts without end, in short-lived threads and in forked children, registers label sets
// meanwhile, and keeps a ledger, until it is stopped or killed.
//
//   chaos_worker --describe
//   chaos_worker DIRECTORY SEED      DIRECTORY: of the ledgers. Role, replica and job come from the environment
//   chaos_worker --short             a short process: registers a few series, counts a fixed number of times, ends
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "instruments.h"
#include "ledger.h"
#include "steps.h"

namespace chaos {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kMainSlot = 0;
constexpr uint32_t kSteadySlot = 1;
constexpr uint32_t kFirstShortSlot = 2;
constexpr uint32_t kShortThreads = Ledger::kSlots - kFirstShortSlot;

struct Self {
  std::string directory;
  std::string role;
  int replica = 0;
  bool steps = false;  // it is a rank, and numbers its steps
};

// Counts when its thread ends, in a later destructor than most.
class Farewell {
 public:
  Farewell() = default;
  Farewell(const Farewell&) = delete;
  Farewell& operator=(const Farewell&) = delete;
  ~Farewell() {
    if (instruments_ != nullptr) instruments_->CountFarewell(*slot_);
  }
  void Arm(Instruments& instruments, Slot& slot) {
    instruments_ = &instruments;
    slot_ = &slot;
  }

 private:
  Instruments* instruments_ = nullptr;
  Slot* slot_ = nullptr;
};
thread_local Farewell farewell;

// One process's activity; a forked child has its own, with the same instruments.
class Life {
 public:
  Life(const Self& self, Instruments& instruments, const Control& control, uint32_t seed, bool lossy)
      : self_(self),
        instruments_(instruments),
        control_(control),
        random_(seed),
        ledger_(self.directory, self.role, self.replica, Instruments::CellCount()),
        main_(ledger_.SlotOf(kMainSlot)) {
    // The ledger exists: from now on the orchestrator waits until this process has seen that the directory is full.
    const uint32_t full = control_.full.load();
    // Handles without space count nothing, also in a child.
    ledger_.header().lossy = lossy || full % 2 != 0 ? 1 : 0;
    ledger_.header().full_seen = full;
    if (self_.steps) {
      ledger_.header().born_ns = NowNs();
      ledger_.header().started_ns = StartedNs();
    }
  }

  // `until`: the time at which it ends without a signal.
  void Run(Clock::time_point until, bool may_fork) {
    if (self_.steps) RecordExit(ledger_);
    Export();
    ledger_.Enter(State::kGrowing);
    std::jthread steady([this, seed = static_cast<uint32_t>(random_())](const std::stop_token& stop) { Steady(stop, seed); });
    for (int i = 0; i < 4; ++i) {
      instruments_.RegisterNext(main_, random_);
    }
    ShortThreads(kShortThreads);
    std::optional<Steps> steps;
    if (self_.steps) steps.emplace(ledger_, self_.directory);
    const auto train = [&] {
      Turn(may_fork);
      Bury(WNOHANG);
    };
    const auto wait = [&] { std::this_thread::sleep_for(milliseconds(1 + random_() % 2)); };
    while (ledger_.header().stop == 0 && Clock::now() < until) {
      if (steps) {
        steps->Step(train, wait);
      } else {
        train();
        wait();
      }
    }
    Bury(0);
    steady.request_stop();
    steady.join();
    ledger_.Enter(State::kEnded);
  }

 private:
  void Export() {
    ledger_.header().exporting = static_cast<uint32_t>(Exporting::kMaybe);
    if (random_() % 2 == 0) Count(20);  // the first use may create the segment
    const bool exporting = persia::metrics::Init().exporting;
    ledger_.header().exporting = static_cast<uint32_t>(exporting ? Exporting::kYes : Exporting::kNo);
  }

  void Turn(bool may_fork) {
    const uint32_t full = control_.full.load();
    ledger_.header().full_seen = full;
    met_full_ = met_full_ || full % 2 != 0;
    const auto choice = random_() % 16;
    if (full % 2 != 0 && choice < 4) {
      ledger_.Enter(State::kRegistering);
      instruments_.RegisterUnderFull(main_, random_);
    } else if (choice < 5) {
      ledger_.Enter(State::kRegistering);
      for (int i = 0; !met_full_ && i < 4; ++i) instruments_.RegisterNext(main_, random_);
    } else if (choice < 8) {
      ledger_.Enter(State::kThreads);
      ShortThreads(1 + static_cast<uint32_t>(random_() % kShortThreads));
    } else if (choice == 8 && may_fork && full % 2 == 0 && children_ == 0 && random_() % 16 == 0) {
      ledger_.Enter(State::kForking);
      Fork();
    } else if (choice == 9) {
      ledger_.Enter(State::kBusy);  // without a pause, so that a kill meets a call
      Count(4000);
    }
    ledger_.Enter(State::kCounting);
    Count(32);
    instruments_.SetLast(main_, static_cast<double>(getpid()) * 1e6 + static_cast<double>(++gauge_sets_));
  }

  void Count(int times) {
    for (int i = 0; i < times; ++i) {
      instruments_.CountOne(main_, random_);
      instruments_.CountOneSteady(main_, random_);
    }
  }

  void Steady(const std::stop_token& stop, uint32_t seed) {
    Slot slot = ledger_.SlotOf(kSteadySlot);
    Random random(seed);
    while (!stop.stop_requested()) {
      for (int i = 0; i < 16; ++i) {
        instruments_.CountOne(slot, random);
        instruments_.CountOneSteady(slot, random);
      }
      std::this_thread::sleep_for(milliseconds(2));
    }
  }

  // Each counts a little, the last time while it ends.
  void ShortThreads(uint32_t many) {
    std::vector<Slot> slots;
    for (uint32_t i = 0; i < many; ++i) slots.push_back(ledger_.SlotOf(kFirstShortSlot + i));
    std::vector<std::jthread> threads;
    for (Slot& slot : slots) {
      threads.emplace_back([this, &slot, seed = static_cast<uint32_t>(random_())] {
        farewell.Arm(instruments_, slot);
        Random random(seed);
        for (uint64_t i = 8 + random() % 32; i > 0; --i) instruments_.CountOne(slot, random);
      });
    }
    // Joined before their slots are destroyed.
    threads.clear();
  }

  void Fork() {
    const auto seed = static_cast<uint32_t>(random_());
    const pid_t child = fork();
    if (child == 0) {
      const Self self{self_.directory, self_.role, self_.replica};  // which is no rank
      Life(self, instruments_, control_, seed, ledger_.header().lossy != 0)
          .Run(Clock::now() + milliseconds(200 + seed % 1500), false);
      _exit(0);
    }
    children_ += child > 0 ? 1 : 0;
  }

  void Bury(int how) {
    while (children_ > 0 && waitpid(-1, nullptr, how) > 0) --children_;
  }

  const Self& self_;
  Instruments& instruments_;
  const Control& control_;
  Random random_;
  Ledger ledger_;
  Slot main_;
  int children_ = 0;
  uint64_t gauge_sets_ = 0;
  // After a request without space the library drops most requests for new series for a while, so none is made.
  bool met_full_ = false;
};

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int ShortProcess() {
  const persia::metrics::InitResult result = persia::metrics::Init();
  if (!result.exporting) {
    std::fprintf(stderr, "chaos worker: %s\n", result.detail.c_str());
    return 70;
  }
  persia::metrics::Counter processes("chaos", "short_processes_total", {.help = "Short processes."});
  persia::metrics::Counter tenths("chaos", "short_tenths_total", {.help = "0.1 for each short process."});
  persia::metrics::TimeCost step("chaos", "short_step_time_cost", {.help = "A step.", .unit = "seconds"});
  persia::metrics::Family<persia::metrics::Counter> parts("chaos", "short_parts_total", {.help = "By part."});
  processes.Increment();
  tenths.Increment(0.1);
  step.Observe(0.25);
  for (const char* part : {"a", "b", "c"}) parts.With({{"part", part}}).Increment(2);
  persia::metrics::events::Record("chaos", "short");
  return 0;
}

}  // namespace
}  // namespace chaos

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--describe") == 0) {
    chaos::Instruments::Describe();
    return 0;
  }
  if (argc == 2 && std::strcmp(argv[1], "--short") == 0) return chaos::ShortProcess();
  if (argc != 3) {
    std::fputs("usage: chaos_worker --describe | --short | DIRECTORY SEED\n", stderr);
    return 64;
  }
  const auto seed = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  const chaos::Self self{argv[1], chaos::Environment("PERSIA_ROLE"), std::atoi(chaos::Environment("REPLICA_INDEX").c_str()),
                         !chaos::Environment("CHAOS_STEPS").empty()};
  auto instruments = std::make_unique<chaos::Instruments>(seed);
  chaos::Life(self, *instruments, chaos::OpenControl(self.directory), seed, false).Run(chaos::Clock::time_point::max(), true);
}
