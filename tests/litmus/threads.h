// Threads of a recorded program, of which one runs at a time. A seeded choice decides which, so that a run can be repeated.
//
// They are real threads, since the library's lanes follow them, and hand a turn to each other. Thread safety: any thread.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "memory_model.h"

namespace persia::litmus {

inline constexpr ThreadId kNotRecorded = UINT32_MAX;

// The calling thread; kNotRecorded: not of a program, or none runs.
ThreadId CurrentThread();
void SetCurrentThread(ThreadId thread);
// Whether accesses of the calling thread are the program's.
bool IsRecorded();

// In its life, accesses of the calling thread are this folder's own.
class Unrecorded {
 public:
  Unrecorded();
  ~Unrecorded();
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;
};

// Runs these threads, numbered from the first free number on, to their ends.
void RunThreads(const std::vector<std::function<void()>>& bodies);
// The calling thread stops at one of its next `within` operations, for `least` to `most` operations of others.
void RestSoon(uint32_t within, uint32_t least, uint32_t most);
// Another thread may run now. `must`: the calling one cannot go on before. False: there is no other one.
bool MayTurn(bool must);
// Whether `address` is on the calling thread's own stack.
bool IsOnStack(const volatile void* address);

}  // namespace persia::litmus
