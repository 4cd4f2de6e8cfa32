#include "log.h"

#include <sys/uio.h>
#include <unistd.h>

namespace persia::metrics {

void LogLine(std::string_view text) noexcept {
  constexpr std::string_view kPrefix = "persia-metrics: ";
  constexpr std::string_view kEnd = "\n";
  const auto part = [](std::string_view s) { return iovec{const_cast<char*>(s.data()), s.size()}; };
  const iovec parts[] = {part(kPrefix), part(text), part(kEnd)};
  [[maybe_unused]] const ssize_t written = writev(STDERR_FILENO, parts, 3);
}

void LogLineOnce(std::atomic<bool>& said, std::string_view text) noexcept {
  // Relaxed: it orders nothing but itself.
  if (!said.exchange(true, std::memory_order_relaxed)) {
    LogLine(text);
  }
}

}  // namespace persia::metrics
