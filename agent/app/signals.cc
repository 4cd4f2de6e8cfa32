#include "app/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace persia::agent {
namespace {

constexpr int kRead[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

void Set(int signal, void (*handler)(int), struct sigaction* former) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, former);
}

}  // namespace

SignalReader::SignalReader() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : kRead) {
    sigaddset(&wanted, signal);
  }
  pthread_sigmask(SIG_BLOCK, &wanted, &inherited_mask_);
  // A reader that went away, and a terminal that stops background writers, are no reasons to stop.
  Set(SIGPIPE, SIG_IGN, &inherited_pipe_);
  Set(SIGTTOU, SIG_IGN, &inherited_ttou_);
  // Inherited as ignored, children would vanish with their exit codes.
  Set(SIGCHLD, SIG_DFL, &inherited_child_);
  signals_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

SignalReader::~SignalReader() {
  close(signals_);
  close(wake_);
  RestoreInChild();
}

std::optional<ReceivedSignal> SignalReader::Next() {
  for (;;) {
    signalfd_siginfo info;
    if (read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      return ReceivedSignal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
    }
    uint64_t count = 0;
    if (read(wake_, &count, sizeof count) == static_cast<ssize_t>(sizeof count)) {
      return std::nullopt;
    }
    pollfd waiting[] = {{signals_, POLLIN, 0}, {wake_, POLLIN, 0}};
    poll(waiting, 2, -1);
  }
}

void SignalReader::Wake() {
  const uint64_t one = 1;
  while (write(wake_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

bool SignalReader::InheritedAsIgnored(int signal) {
  // Blocking does not change the disposition of what is read; and a blocked signal is handed out even when it is ignored.
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

void SignalReader::RestoreInChild() const {
  sigaction(SIGPIPE, &inherited_pipe_, nullptr);
  sigaction(SIGTTOU, &inherited_ttou_, nullptr);
  sigaction(SIGCHLD, &inherited_child_, nullptr);
  pthread_sigmask(SIG_SETMASK, &inherited_mask_, nullptr);
}

}  // namespace persia::agent
