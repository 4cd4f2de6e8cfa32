#include "source/guarded_copy.h"

#include <ucontext.h>

#include <csetjmp>
#include <csignal>
#include <mutex>

// The loads below may fault in the middle; a sanitizer's wrapper around them would be left in the middle too.
#define PERSIA_UNWATCHED __attribute__((noinline, no_sanitize("thread")))

namespace persia::agent {
namespace {

// The copy that the calling thread is in.
struct Guard {
  sigjmp_buf back;
  uintptr_t begin;
  uintptr_t end;
};

// Read by the handler on the same thread; volatile keeps its stores on their side of the loads.
thread_local Guard* volatile active_guard = nullptr;

struct sigaction previous_action;

void OnBusError(int signal, siginfo_t* info, void* context) {
  Guard* guard = active_guard;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  // Sent by the kernel for a fault (si_code > 0), not by a kill.
  if (guard != nullptr && info->si_code > 0 && address >= guard->begin && address < guard->end) {
    active_guard = nullptr;
    // Leaving by a jump, the signals that were blocked for this handler must be unblocked by hand. Here, since it happens once
    // in a blue moon, and not by sigsetjmp, which would make a system call for each copy.
    pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(guard->back, 1);
  }
  // Not ours. A fault comes again as soon as we return; a signal that was sent must be sent again.
  sigaction(SIGBUS, &previous_action, nullptr);
  if (info->si_code <= 0) {
    raise(signal);
  }
}

void InstallHandler() {
  struct sigaction action {};
  action.sa_sigaction = &OnBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &previous_action);
}

void EnsureHandler() {
  static std::once_flag once;
  std::call_once(once, InstallHandler);
}

template <int order>
PERSIA_UNWATCHED bool CopyWords(const uint64_t* from, uint64_t* to, size_t words) {
  Guard guard;
  guard.begin = reinterpret_cast<uintptr_t>(from);
  guard.end = guard.begin + words * sizeof(uint64_t);
  if (sigsetjmp(guard.back, 0) != 0) {
    return false;
  }
  active_guard = &guard;
  for (size_t i = 0; i < words; ++i) {
    to[i] = __atomic_load_n(from + i, order);
  }
  active_guard = nullptr;
  return true;
}

template <int order>
bool Guarded(const std::byte* from, std::span<uint64_t> to) {
  EnsureHandler();
  return CopyWords<order>(reinterpret_cast<const uint64_t*>(from), to.data(), to.size());
}

}  // namespace

bool GuardedCopy(const std::byte* from, std::span<uint64_t> to) { return Guarded<__ATOMIC_RELAXED>(from, to); }

bool GuardedCopyInOrder(const std::byte* from, std::span<uint64_t> to) { return Guarded<__ATOMIC_ACQUIRE>(from, to); }

}  // namespace persia::agent
