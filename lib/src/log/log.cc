#include "log.h"

#include <sys/uio.h>
#include <unistd.h>

#include "signal_consumed.h"

namespace persia::metrics {

void LogLine(std::initializer_list<std::string_view> parts) noexcept {
  iovec line[kMaxLogParts + 2];
  int count = 0;
  const auto add = [&](std::string_view text) { line[count++] = {const_cast<char*>(text.data()), text.size()}; };
  add("persia-metrics: ");
  for (const std::string_view part : parts) {
    add(part);
  }
  add("\n");
  // Of a stderr that is a pipe without a reader, or a file at its size limit.
  const SignalConsumed no_sigpipe(SIGPIPE);
  const SignalConsumed no_sigxfsz(SIGXFSZ);
  [[maybe_unused]] const ssize_t written = writev(STDERR_FILENO, line, count);
}

void LogLineOnce(std::atomic<bool>& logged, std::initializer_list<std::string_view> parts) noexcept {
  if (!logged.exchange(true, std::memory_order_relaxed)) {
    LogLine(parts);
  }
}

}  // namespace persia::metrics
