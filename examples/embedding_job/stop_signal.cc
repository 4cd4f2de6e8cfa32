#include "stop_signal.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>

#include "job_error.h"

namespace embedding_job {
namespace {

std::atomic<StopSignal*> signal_target = nullptr;

void OnSignal(int /*number*/) {
  const int saved = errno;
  signal_target.load(std::memory_order_acquire)->Request();  // pairs with the release in CatchSignals
  errno = saved;
}

}  // namespace

StopSignal::StopSignal() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) throw JobError(std::string("cannot make an eventfd: ") + std::strerror(errno));
}

StopSignal::~StopSignal() { close(fd_); }

void StopSignal::CatchSignals() {
  signal_target.store(this, std::memory_order_release);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    sigaction(number, &action, nullptr);
    sigaddset(&set, number);
  }
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void StopSignal::Request() noexcept {
  requested_.store(true, std::memory_order_relaxed);
  const uint64_t one = 1;
  // It is never read, so it stays readable. A full eventfd is readable too.
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof(one));
}

bool StopSignal::WaitFor(int milliseconds) const {
  pollfd waited = {.fd = fd_, .events = POLLIN, .revents = 0};
  poll(&waited, 1, milliseconds);
  return Requested();
}

}  // namespace embedding_job
