#include "supervisor/signals.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace persia::supervisor {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};

constexpr uint64_t Bit(int signal) { return uint64_t{1} << (signal - 1); }

void SetMask(int how, uint64_t mask, uint64_t* previous = nullptr) {
  syscall(SYS_rt_sigprocmask, how, &mask, previous, sizeof mask);
}

bool IsIgnored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

constexpr uint64_t kOfKeys = Bit(SIGINT) | Bit(SIGQUIT) | Bit(SIGTSTP) | Bit(SIGTTIN) | Bit(SIGTTOU) | Bit(SIGWINCH);

}  // namespace

Signals::Signals() {
  SetMask(SIG_BLOCK, kAll, &inherited_mask_);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &inherited_child_);
}

int Signals::Take(siginfo_t& info, int64_t milliseconds, int only) const {
  const uint64_t wanted = only == 0 ? kAll : Bit(only);
  if (milliseconds < 0) milliseconds = 0;
  const timespec limit{.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
  const long taken = syscall(SYS_rt_sigtimedwait, &wanted, &info, &limit, sizeof wanted);
  return taken < 0 ? 0 : static_cast<int>(taken);
}

uint64_t Signals::Pending() const {
  uint64_t pending = 0;
  syscall(SYS_rt_sigpending, &pending, sizeof pending);
  return pending;
}

int Signals::PendingEnd(uint64_t pending) const {
  constexpr int kEnding[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};
  for (const int signal : kEnding)
    if ((pending & ~inherited_mask_ & Bit(signal)) != 0 && !IsIgnored(signal)) return signal;
  return 0;
}

bool Signals::IsForGroup(int signal, const siginfo_t& info) {
  return info.si_code == SI_KERNEL && ((kOfKeys & Bit(signal)) != 0 || (signal == SIGHUP && getsid(0) != getpid()));
}

void Signals::StopBy(int signal) const {
  kill(getpid(), signal);
  SetMask(SIG_UNBLOCK, Bit(signal));
  SetMask(SIG_BLOCK, Bit(signal));
}

void Signals::RestoreInChild() const {
  sigaction(SIGCHLD, &inherited_child_, nullptr);
  SetMask(SIG_SETMASK, inherited_mask_);
}

}  // namespace persia::supervisor
