#include "threads.h"

#include <semaphore.h>

#include <array>
#include <cstdint>
#include <cstdlib>

#include "recorder.h"

namespace persia::litmus {
namespace {

constinit thread_local ThreadId current = kNotRecorded;
constinit thread_local uint32_t unrecorded = 0;
constinit thread_local uintptr_t stack_begin = 0;
constinit thread_local uintptr_t stack_end = 0;

struct Thread {
  sem_t turn;
  bool runs = false;         // is started, and has not ended or waits for others to end
  uint64_t rests_until = 0;  // a step
  uint32_t until_rest = 0;   // own steps; 0: not planned
  uint32_t rest = 0;
  MessagePtr end;
  const std::function<void()>* body = nullptr;
};

std::array<Thread, kMaxThreads> threads;
ThreadId next_thread = 1;
size_t unfinished = 0;
uint64_t steps = 0;  // of all threads
pthread_key_t end_key;
bool has_end_key = false;

void Turn(ThreadId to) { sem_post(&threads[to].turn); }

void Await(ThreadId thread) {
  while (sem_wait(&threads[thread].turn) != 0) {
  }
}

// One that runs, other than `except`, and does not rest, if there is one; kNotRecorded: none.
ThreadId Other(ThreadId except) {
  std::array<ThreadId, kMaxThreads> others;
  for (const bool awake : {true, false}) {
    uint32_t count = 0;
    for (ThreadId id = 0; id < kMaxThreads; ++id) {
      if (id != except && threads[id].runs && (!awake || threads[id].rests_until <= steps)) others[count++] = id;
    }
    if (count > 0) return others[Recorder::Get().random().Below(count)];
  }
  return kNotRecorded;
}

// The destructor of a key that was made after the library's, so that the library has seen the thread's end, too.
void OnEnd(void* /*unused*/) {
  const Unrecorded own;
  const ThreadId self = current;
  threads[self].end = Recorder::Get().memory().Release(self);
  threads[self].runs = false;
  current = kNotRecorded;
  if (--unfinished == 0) threads[0].runs = true;
  Turn(Other(self));
}

void* Run(void* number) {
  const auto self = static_cast<ThreadId>(reinterpret_cast<uintptr_t>(number));
  Await(self);
  SetCurrentThread(self);
  pthread_setspecific(end_key, number);
  (*threads[self].body)();
  return nullptr;
}

}  // namespace

ThreadId CurrentThread() { return current; }

bool IsRecorded() { return current != kNotRecorded && unrecorded == 0; }

Unrecorded::Unrecorded() { ++unrecorded; }
Unrecorded::~Unrecorded() { --unrecorded; }

void SetCurrentThread(ThreadId thread) {
  current = thread;
  pthread_attr_t attributes;
  void* begin = nullptr;
  size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &begin, &bytes);
    pthread_attr_destroy(&attributes);
  }
  stack_begin = reinterpret_cast<uintptr_t>(begin);
  stack_end = stack_begin + bytes;
}

bool IsOnStack(const volatile void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  return at >= stack_begin && at < stack_end;
}

void RunThreads(const std::vector<std::function<void()>>& bodies) {
  const Unrecorded own;
  Memory& memory = Recorder::Get().memory();
  if (!has_end_key) {
    has_end_key = pthread_key_create(&end_key, &OnEnd) == 0;
    sem_init(&threads[0].turn, 0, 0);
  }
  if (!has_end_key || next_thread + bodies.size() > kMaxThreads) abort();
  const MessagePtr begin = memory.Release(0);
  std::vector<pthread_t> started(bodies.size());
  const ThreadId first = next_thread;
  for (size_t i = 0; i < bodies.size(); ++i) {
    Thread& thread = threads[next_thread];
    sem_init(&thread.turn, 0, 0);
    thread.runs = true;
    thread.body = &bodies[i];
    memory.Acquire(next_thread, begin);
    if (pthread_create(&started[i], nullptr, &Run, reinterpret_cast<void*>(uintptr_t{next_thread})) != 0) abort();
    ++next_thread;
  }
  unfinished = bodies.size();
  threads[0].runs = false;
  Turn(Other(0));
  Await(0);
  for (size_t i = 0; i < bodies.size(); ++i) {
    pthread_join(started[i], nullptr);
    memory.Acquire(0, threads[first + i].end);
  }
}

void RestSoon(uint32_t within, uint32_t least, uint32_t most) {
  const Unrecorded own;
  Random& random = Recorder::Get().random();
  threads[current].until_rest = 1 + random.Below(within);
  threads[current].rest = least + random.Below(most - least);
}

bool MayTurn(bool must) {
  const ThreadId self = current;
  Random& random = Recorder::Get().random();
  ++steps;
  if (!must) {
    if (unfinished < 2) return true;
    // Sometimes a thread rests for up to the time of a long call of another one.
    Thread& own = threads[self];
    const bool planned = own.until_rest > 0 && --own.until_rest == 0;
    const bool rests = planned || random.OneIn(128);
    if (rests) own.rests_until = steps + (planned ? own.rest : 1U << random.Below(14));
    if (!rests && !random.OneIn(4)) return true;
  }
  const ThreadId other = Other(self);
  if (other == kNotRecorded) return false;
  Turn(other);
  Await(self);
  return true;
}

}  // namespace persia::litmus
