#include "log.h"

#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "fork_locks.h"
#include "persia/metrics/log.h"
#include "signal_consumed.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

constexpr int kPatienceMilliseconds = 100;

// Never destroyed: lines are logged after main. The handler is guarded by the lock, the flag saves taking it.
std::atomic<bool> has_handler = false;
alignas(std::shared_ptr<const LogHandler>) std::byte handler_storage[sizeof(std::shared_ptr<const LogHandler>)];

// An all-zero shared_ptr is an empty one.
std::shared_ptr<const LogHandler>& Held() {
  return *std::launder(reinterpret_cast<std::shared_ptr<const LogHandler>*>(handler_storage));
}

// False: there is no handler, or it failed.
bool PassToHandler(std::initializer_list<std::string_view> parts) {
  if (!has_handler.load(std::memory_order_relaxed)) return false;
  std::shared_ptr<const LogHandler> handler;
  {
    MutexLock lock(MutexOf(ForkLock::kLog));
    handler = Held();
  }
  if (handler == nullptr) return false;
  try {
    std::string line;
    for (const std::string_view part : parts) line += part;
    (*handler)(line);
    return true;
  } catch (...) {
    return false;
  }
}

void WriteToStderr(std::initializer_list<std::string_view> parts) {
  iovec line[kMaxLogParts + 2];
  int count = 0;
  const auto add = [&](std::string_view text) { line[count++] = {const_cast<char*>(text.data()), text.size()}; };
  add("persia-metrics: ");
  for (const std::string_view part : parts) add(part);
  add("\n");
  // A reader that hangs must not hang the program: the line is lost then.
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  if (poll(&out, 1, kPatienceMilliseconds) == 0) return;
  // Of a stderr that is a pipe without a reader, or a file at its size limit.
  const SignalConsumed no_sigpipe(SIGPIPE);
  const SignalConsumed no_sigxfsz(SIGXFSZ);
  [[maybe_unused]] const ssize_t written = writev(STDERR_FILENO, line, count);
}

}  // namespace

void LogLine(std::initializer_list<std::string_view> parts) noexcept {
  if (!PassToHandler(parts)) WriteToStderr(parts);
}

void LogLineOnce(std::atomic<bool>& logged, std::initializer_list<std::string_view> parts) noexcept {
  if (!logged.exchange(true, std::memory_order_relaxed)) LogLine(parts);
}

void SetLogHandler(LogHandler handler) noexcept try {
  auto held = handler == nullptr ? nullptr : std::make_shared<const LogHandler>(std::move(handler));
  MutexLock lock(MutexOf(ForkLock::kLog));
  Held().swap(held);  // the former one is destroyed after the lock is released: `held` lives longer
  has_handler.store(Held() != nullptr, std::memory_order_relaxed);
} catch (const std::exception&) {  // out of memory: nothing changes
}

}  // namespace abi_1
}  // namespace persia::metrics
