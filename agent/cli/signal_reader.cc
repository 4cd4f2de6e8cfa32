#include "cli/signal_reader.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>

namespace persia::agent {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

}  // namespace

SignalReader::SignalReader(pid_t ender) : ender_(ender) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : kSignals) sigaddset(&wanted, signal);
  pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTTOU, SIG_IGN);
  signal_fd_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

SignalReader::~SignalReader() {
  close(signal_fd_);
  close(wake_fd_);
}

std::optional<ReceivedSignal> SignalReader::Next(std::optional<TimePoint> until) {
  for (;;) {
    signalfd_siginfo info;
    if (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      return ReceivedSignal{.number = static_cast<int>(info.ssi_signo),
                            .from_terminal = info.ssi_code == SI_KERNEL,
                            .may_end = ender_ == 0 || info.ssi_pid == static_cast<uint32_t>(ender_)};
    }
    uint64_t count = 0;
    if (read(wake_fd_, &count, sizeof count) == static_cast<ssize_t>(sizeof count)) return std::nullopt;
    int timeout = -1;
    if (until) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - std::chrono::steady_clock::now());
      if (left.count() <= 0) return std::nullopt;
      timeout = static_cast<int>(std::min<int64_t>(left.count(), INT_MAX));
    }
    pollfd waiting[] = {{signal_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
    poll(waiting, 2, timeout);
  }
}

void SignalReader::Wake() {
  const uint64_t one = 1;
  while (write(wake_fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

bool SignalReader::InheritedAsIgnored(int signal) {
  // A signalfd also returns signals whose inherited disposition is to ignore them.
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace persia::agent
