#include "callbacks.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fork_locks.h"
#include "log.h"
#include "persia/metrics/callback.h"
#include "registry.h"
#include "signals_blocked.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLimit(1000);  // for one call
constexpr milliseconds kPoll(50);     // how often a running call is looked at
constexpr size_t kMaxHung = 8;

struct Entry {
  CallbackTarget target;
  std::function<double()> function;
  std::atomic<bool> removed = false;
  std::atomic<bool> hangs = false;
  std::atomic<bool> failure_logged = false;
};
using Entries = std::vector<std::shared_ptr<Entry>>;

// Calls entries. The scheduler gives it a round of them, and leaves it if a call takes too long.
struct Worker {
  std::shared_ptr<const Entries> round;  // guarded by the lock; null: there is none
  size_t from = 0;                       // guarded by the lock: the round's first entry
  std::atomic<const Entry*> running = nullptr;
  std::atomic<bool> left = false;
  std::shared_ptr<Entry> hung;  // guarded by the lock: the entry at which it was left
  std::thread::id thread = {};  // guarded by the lock
};

// Made anew in a forked child, and never destroyed. All but the atomics of workers and entries is guarded by the lock.
struct State {
  pid_t pid = getpid();
  std::unordered_map<uint32_t, std::shared_ptr<Entry>> entries;  // by slot
  std::shared_ptr<const Entries> round;                          // the same; null: it is to be made again
  std::vector<std::shared_ptr<Worker>> workers;                  // those that left included, until their call returns
  size_t hung = 0;
  bool stops = false;
  bool has_scheduler = false;
  std::condition_variable changed;  // a round is given or done, or it stops
};

constinit State* state = nullptr;
std::atomic<int64_t> period_ms = 5000;

std::mutex& Lock() { return MutexOf(ForkLock::kCallbacks).native(); }

void Fail(Entry& entry, std::string_view separator = {}, std::string_view what = {}) noexcept {
  entry.target.withdraw();
  LogLineOnce(entry.failure_logged, {"the function of a gauge or counter threw an exception", separator, what,
                                     "; it has no value until the function returns one"});
}

void Call(Entry& entry) {
  try {
    entry.target.apply(entry.function());
  } catch (const std::exception& error) {
    Fail(entry, ": ", error.what());
  } catch (...) {
    // No exception of C++: pthread_exit, by which Python ends a thread that it does not let in any more.
    if (std::current_exception() == nullptr) throw;
    Fail(entry);
  }
}

// Calls the entries of the worker's round, until the scheduler leaves the worker.
void CallRound(Worker& worker, const Entries& round, size_t from) {
  for (size_t i = from; i < round.size() && !worker.left.load(); ++i) {
    Entry& entry = *round[i];
    // Both sequentially consistent, as in SetCallback: either it sees the entry run, or this sees it removed.
    worker.running.store(&entry);
    if (!entry.removed.load() && !entry.hangs.load()) Call(entry);
  }
  worker.running.store(nullptr);
}

void Work(State& of, const std::shared_ptr<Worker>& worker) {
  std::unique_lock lock(Lock());
  worker->thread = std::this_thread::get_id();
  while (true) {
    of.changed.wait(lock, [&] { return worker->round != nullptr || of.stops; });
    if (of.stops) return;
    const std::shared_ptr<const Entries> round = worker->round;
    const size_t from = worker->from;
    lock.unlock();
    CallRound(*worker, *round, from);
    lock.lock();
    worker->round = nullptr;
    if (worker->left.load()) {
      worker->hung->hangs.store(false);
      --of.hung;
      std::erase(of.workers, worker);
      return;
    }
    of.changed.notify_all();
  }
}

// Null: no thread can be started.
std::shared_ptr<Worker> StartWorker(State& of) {
  auto worker = std::make_shared<Worker>();
  of.workers.push_back(worker);
  try {
    const SignalsBlocked blocked;
    std::thread([&of, worker] { Work(of, worker); }).detach();
  } catch (const std::system_error&) {
    of.workers.pop_back();
    return nullptr;
  }
  return worker;
}

// Leaves a worker whose call takes too long. Returns the index of the entry after it.
size_t Leave(State& of, Worker& worker, const Entry* hung) {
  const Entries& round = *worker.round;
  const auto at = std::ranges::find_if(round, [&](const auto& entry) { return entry.get() == hung; });
  (*at)->hangs.store(true);
  (*at)->target.withdraw();
  LogLineOnce((*at)->failure_logged,
              "the function of a gauge or counter takes longer than a second; it has no value until the function returns one");
  worker.hung = *at;
  worker.left.store(true);
  ++of.hung;
  return static_cast<size_t>(at - round.begin()) + 1;
}

// Waits for the end of the worker's round. Returns the worker, or null if it was left, and then the first entry that was not
// called.
std::shared_ptr<Worker> WaitForRound(State& of, std::unique_lock<std::mutex>& lock, std::shared_ptr<Worker> worker,
                                     size_t* next) {
  const Entry* last = nullptr;
  auto since = steady_clock::now();
  while (!of.changed.wait_for(lock, kPoll, [&] { return worker->round == nullptr || of.stops; })) {
    const Entry* now = worker->running.load();
    if (now != last) {
      last = now;
      since = steady_clock::now();
    } else if (now != nullptr && steady_clock::now() - since >= kLimit) {
      *next = Leave(of, *worker, now);
      return nullptr;
    }
  }
  return worker;
}

std::shared_ptr<const Entries> RoundOf(State& of) {
  if (of.round == nullptr) {
    auto round = std::make_shared<Entries>();
    for (const auto& [slot, entry] : of.entries) round->push_back(entry);
    of.round = std::move(round);
  }
  return of.round;
}

void Schedule(State& of) {
  std::unique_lock lock(Lock());
  std::shared_ptr<Worker> worker;
  while (!of.stops) try {
      const auto due = steady_clock::now() + milliseconds(period_ms.load());
      const std::shared_ptr<const Entries> round = RoundOf(of);
      for (size_t next = 0; next < round->size() && !of.stops && of.hung < kMaxHung;) {
        if (worker == nullptr && (worker = StartWorker(of)) == nullptr) break;
        worker->from = std::exchange(next, round->size());
        worker->round = round;
        of.changed.notify_all();
        worker = WaitForRound(of, lock, std::move(worker), &next);
      }
      // SetCallbackPeriod may make the period shorter in the meantime.
      const auto is_due = [&] { return of.stops || steady_clock::now() + milliseconds(period_ms.load()) < due; };
      of.changed.wait_until(lock, due, is_due);
    } catch (const std::bad_alloc&) {
      Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
      of.changed.wait_for(lock, kLimit);
    }
}

}  // namespace

void StopCallbacks() noexcept {
  std::unique_lock lock(Lock());
  if (state == nullptr || state->pid != getpid() || state->stops) return;
  state->stops = true;
  for (const auto& [slot, entry] : state->entries) entry->removed.store(true);
  state->changed.notify_all();
  const auto workers = state->workers;
  lock.unlock();
  const auto until = steady_clock::now() + kLimit;
  const auto runs = [](const auto& worker) { return !worker->left.load() && worker->running.load() != nullptr; };
  while (std::ranges::any_of(workers, runs) && steady_clock::now() < until) std::this_thread::sleep_for(milliseconds(1));
}

namespace {

State& StateOfThisProcess() {
  if (state == nullptr) std::atexit(&StopCallbacks);  // a function may use what the program's static objects own
  if (state == nullptr || state->pid != getpid()) state = new State;
  return *state;
}

// Replaces the entry of the target's slot; null removes it. Returns the former one.
std::shared_ptr<Entry> Replace(State& of, uint32_t slot, std::shared_ptr<Entry> entry) {
  const auto at = of.entries.find(slot);
  std::shared_ptr<Entry> former = at == of.entries.end() ? nullptr : at->second;
  if (entry == nullptr)
    of.entries.erase(slot);
  else
    of.entries.insert_or_assign(slot, std::move(entry));
  of.round = nullptr;
  return former;
}

// Another thread runs the entry's function.
bool RunsElsewhere(const State& of, const Entry& entry) {
  const std::lock_guard lock(Lock());
  return std::ranges::any_of(of.workers, [&](const auto& worker) {
    return worker->running.load() == &entry && worker->thread != std::this_thread::get_id();
  });
}

void Set(CallbackTarget target, std::function<double()> function) {
  std::shared_ptr<Entry> entry;
  const uint32_t slot = target.slot;
  const auto withdraw = target.withdraw;
  const bool removes = function == nullptr;
  if (!removes) {
    entry = std::make_shared<Entry>();
    entry->target = std::move(target);
    entry->function = std::move(function);
  }
  std::unique_lock lock(Lock());
  State& of = StateOfThisProcess();
  if (of.stops) return;
  const std::shared_ptr<Entry> former = Replace(of, slot, std::move(entry));
  if (!of.has_scheduler && !removes) {
    try {
      const SignalsBlocked blocked;
      std::thread([&of] { Schedule(of); }).detach();
      of.has_scheduler = true;
    } catch (const std::system_error&) {
      LogLine("no thread can be started; the functions of gauges and counters are not called");
    }
  }
  lock.unlock();
  if (former == nullptr) return;
  former->removed.store(true);
  while (RunsElsewhere(of, *former)) std::this_thread::sleep_for(milliseconds(1));
  if (removes) withdraw();
}

}  // namespace

void SetCallback(CallbackTarget target, std::function<double()> function) noexcept {
  if (target.slot == internal::kScratchSlot) return;
  try {
    Set(std::move(target), std::move(function));
  } catch (const std::bad_alloc&) {
    Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  }
}

void EndCallback(uint32_t slot) noexcept {
  {
    const std::lock_guard lock(Lock());
    const bool known = state != nullptr && state->pid == getpid() && state->entries.contains(slot);
    if (!known) return;  // and no state is made for it
  }
  SetCallback({slot, nullptr, [] {}}, nullptr);
}

void SetCallbackPeriod(milliseconds period) noexcept {
  constexpr milliseconds kLeast(10);
  constexpr milliseconds kMost = std::chrono::hours(24);
  period_ms.store(std::clamp(period, kLeast, kMost).count());
  const std::lock_guard lock(Lock());
  if (state != nullptr && state->pid == getpid()) state->changed.notify_all();
}

void Gauge::SetFunction(std::function<double()> function) noexcept {
  try {
    SetCallback(
        {slot_, [gauge = *this](double value) mutable { gauge.Set(value); }, [gauge = *this]() mutable { gauge.Unset(); }},
        std::move(function));
  } catch (const std::bad_alloc&) {
    Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  }
}

// A total that falls was reset: it is added as a whole.
void Counter::SetFunction(std::function<double()> function) noexcept {
  try {
    const auto apply = [counter = *this, last = 0.0](double now) mutable {
      if (!(now >= 0) || now > 1e300) return Registry::Get().CountLost(segment::Drop::kBadValue, counter.slot_);
      counter.Increment(now >= last ? now - last : now);
      last = now;
    };
    SetCallback({slot_, apply, [] {}}, std::move(function));
  } catch (const std::bad_alloc&) {
    Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  }
}

}  // namespace abi_1
}  // namespace persia::metrics
