#include "segment/guarded_copy.h"

#include <ucontext.h>

#include <csetjmp>
#include <csignal>
#include <mutex>

// A fault jumps out of the loads below, and would leave a sanitizer's wrapper around them half done.
#define PERSIA_NO_TSAN __attribute__((noinline, no_sanitize("thread")))

namespace persia::agent {
namespace {

// A copy in progress.
struct Guard {
  sigjmp_buf return_point;
  uintptr_t begin;
  uintptr_t end;
};

// The calling thread's copy, read by the handler on the same thread; volatile keeps its stores in order with the loads.
thread_local Guard* volatile active_guard = nullptr;

struct sigaction previous_action;

void OnBusError(int signal, siginfo_t* info, void* context) {
  Guard* guard = active_guard;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  // si_code > 0: the kernel raised it for a fault; kill() did not send it.
  if (guard != nullptr && info->si_code > 0 && address >= guard->begin && address < guard->end) {
    active_guard = nullptr;
    // The jump skips the kernel's restoring of the signal mask. Saving it by sigsetjmp would cost a system call per copy.
    pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(guard->return_point, 1);
  }
  // Not from a guarded copy: back to the previous action. A fault recurs on return; a signal that was sent must be raised
  // again.
  sigaction(SIGBUS, &previous_action, nullptr);
  if (info->si_code <= 0) raise(signal);
}

void InstallHandler() {
  struct sigaction action {};
  action.sa_sigaction = &OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &previous_action);
}

// If SIGBUS is blocked, the kernel ends the process at a fault, and calls no handler. A thread begins with the signals blocked
// that its creator blocks. So each thread unblocks SIGBUS before its first copy.
bool PrepareThread() {
  static std::once_flag once;
  std::call_once(once, InstallHandler);
  sigset_t bus_error;
  sigemptyset(&bus_error);
  sigaddset(&bus_error, SIGBUS);
  return pthread_sigmask(SIG_UNBLOCK, &bus_error, nullptr) == 0;
}

template <int order>
PERSIA_NO_TSAN bool CopyWords(const uint64_t* from, uint64_t* to, size_t words) {
  Guard guard;
  guard.begin = reinterpret_cast<uintptr_t>(from);
  guard.end = guard.begin + words * sizeof(uint64_t);
  if (sigsetjmp(guard.return_point, 0) != 0) return false;
  active_guard = &guard;
  for (size_t i = 0; i < words; ++i) to[i] = __atomic_load_n(from + i, order);
  active_guard = nullptr;
  return true;
}

template <int order>
bool Guarded(const std::byte* from, std::span<uint64_t> to) {
  thread_local const bool prepared = PrepareThread();
  return prepared && CopyWords<order>(reinterpret_cast<const uint64_t*>(from), to.data(), to.size());
}

}  // namespace

bool GuardedCopy(const std::byte* from, std::span<uint64_t> to) { return Guarded<__ATOMIC_RELAXED>(from, to); }

bool GuardedCopyInOrder(const std::byte* from, std::span<uint64_t> to) { return Guarded<__ATOMIC_ACQUIRE>(from, to); }

}  // namespace persia::agent
