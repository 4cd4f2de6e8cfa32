// One process's record of its own counts in the chaos test: a file that survives SIGKILL.
//
//   Header                        4096 bytes
//   for each slot: before[cells], after[cells]
//
// A cell is a quantity of the exposition: a counter, a bucket, a sum, a gauge. A slot has one writer at a time, a thread. Each
// call of the library is between an entry in `before` and the same in `after`. So the library's value is between the two
// whenever the process dies: equal to both, except for the call in which the thread was killed.
//
// The file is a shared mapping: the kernel keeps all stores when the process dies.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace chaos {

// The main thread's state, at which a kill may be aimed.
enum class State : uint32_t {
  kBorn = 0,
  kGrowing = 1,
  kCounting = 2,
  kRegistering = 3,
  kThreads = 4,
  kForking = 5,
  kBusy = 6,
  kEnded = 7
};
// Whether an agent can see the counts. kMaybe: while Init runs.
enum class Exporting : uint32_t { kNo = 0, kMaybe = 1, kYes = 2 };

struct LedgerHeader {
  uint64_t magic;
  uint32_t pid;
  uint32_t slots;
  uint32_t cells;
  int32_t replica;
  char role[32];
  std::atomic<uint32_t> exporting;
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> full_seen;  // the last Control::full that the main thread has seen
  std::atomic<uint32_t> lossy;      // 1: started while the directory was full, so the library may drop counts
  std::atomic<uint32_t> stop;       // set by the orchestrator: end now
  // Of a worker that numbers its steps. Times are in nanoseconds of CLOCK_MONOTONIC.
  uint64_t born_ns;                // when it made this ledger: exact, and so the order of the processes of a rank
  uint64_t started_ns;             // to a hundredth of a second
  std::atomic<uint64_t> ended_ns;  // when it exited; 0: not yet
  // The first step, and the last one before and after the call that told it, each plus 1; 0: none.
  std::atomic<uint64_t> first_step;
  std::atomic<uint64_t> step_before;
  std::atomic<uint64_t> step_after;
};
static_assert(offsetof(LedgerHeader, born_ns) == 80);

// One for all processes, written by the orchestrator.
struct Control {
  std::atomic<uint32_t> full;  // odd: the directory is full, or about to be
};

// One quantity and the value that a call adds to it.
struct Entry {
  enum class Kind { kUnits, kReal, kLast };
  uint32_t cell = 0;
  Kind kind = Kind::kUnits;
  uint64_t units = 0;
  double real = 0;

  static Entry Units(uint32_t cell, uint64_t units) { return {cell, Kind::kUnits, units, 0}; }
  // Added as the library adds to one cell of one thread: in doubles, in order.
  static Entry Real(uint32_t cell, double by) { return {cell, Kind::kReal, 0, by}; }
  static Entry Last(uint32_t cell, double value) { return {cell, Kind::kLast, 0, value}; }
};

// The columns of one thread.
class Slot {
 public:
  using Cell = std::atomic<uint64_t>;
  Slot(Cell* before, Cell* after) : before_(before), after_(after) {}

  // Writes the entries down, calls, and writes them down again. A process is killed between two instructions, so that the
  // order of the program is the order of the stores; the fences keep the compiler to it.
  template <class Call>
  void Around(std::initializer_list<Entry> entries, const Call& call) {
    for (const Entry& entry : entries) Write(before_[entry.cell], entry);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    call();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    for (const Entry& entry : entries) Write(after_[entry.cell], entry);
  }

 private:
  static void Write(Cell& cell, const Entry& entry) {
    const uint64_t old = cell.load(std::memory_order_relaxed);
    uint64_t now = old + entry.units;
    if (entry.kind == Entry::Kind::kReal) now = std::bit_cast<uint64_t>(std::bit_cast<double>(old) + entry.real);
    if (entry.kind == Entry::Kind::kLast) now = std::bit_cast<uint64_t>(entry.real);
    cell.store(now, std::memory_order_relaxed);
  }

  Cell* before_;
  Cell* after_;
};

class Ledger {
 public:
  static constexpr uint32_t kSlots = 10;

  // Creates "<directory>/<pid>.ledger" atomically. Ends the process on failure: without a ledger it must not count.
  Ledger(const std::string& directory, const std::string& role, int replica, uint32_t cells);

  [[nodiscard]] LedgerHeader& header() const { return *header_; }
  [[nodiscard]] Slot SlotOf(uint32_t slot) const;
  void Enter(State state) const { header_->state.store(static_cast<uint32_t>(state), std::memory_order_relaxed); }

 private:
  LedgerHeader* header_;
};

// The orchestrator's settings, "<directory>/control".
const Control& OpenControl(const std::string& directory);

}  // namespace chaos
