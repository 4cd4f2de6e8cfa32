#include "persia/metrics/emit.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "descriptor.h"
#include "emit_lines.h"
#include "emit_pipe.h"
#include "fork_locks.h"
#include "persia/metrics/internal/out_of_memory.h"
#include "persia/metrics/stream.h"
#include "signal_consumed.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace benchmarkai {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr char kDefaultPath[] = "/tmp/benchmark-ai/fifo";
constexpr char kOlderDefaultPath[] = "/tmp/benchmark-ai-fifo";  // before September 2019
constexpr char kGroup[] = "benchmarkai";
constexpr double kMaxWait = 365 * 86400.0;  // in seconds; a much longer one would overflow the clock's type

std::string EnvOr(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? fallback : value;
}

duration<double> EnvSecondsOr(const char* name, double fallback) {
  const std::string text = EnvOr(name, "");
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool good = error == std::errc() && end == text.data() + text.size() && std::isfinite(seconds) && seconds >= 0;
  return duration<double>(good ? std::min(seconds, kMaxWait) : fallback);
}

struct Pipe {
  std::string path;
  Descriptor end;
};

// Returns 0, or the error as OpenPipe.
int TryPath(const std::string& path, std::shared_ptr<const Pipe>& pipe, std::string& why) {
  int error = 0;
  std::unique_ptr<const Pipe> fresh(new Pipe{path, Descriptor(OpenPipe(path, error, why))});
  if (fresh->end.valid()) pipe = std::move(fresh);
  return error;
}

std::vector<std::string> PipePaths() {
  std::string path = EnvOr("BENCHMARK_AI_FIFO_FILEPATH", "");
  if (!path.empty()) return {std::move(path)};
  return {kDefaultPath, kOlderDefaultPath};
}

class Emitter;
constinit Emitter* the_emitter = nullptr;  // guarded by the lock

// Sends metrics to the destination that the environment had at the first call. Never destroyed: metrics are emitted after main.
class Emitter {
 public:
  static Emitter& Get() {
    // Not a function-local static, which a fork by another thread may leave locked in the child.
    MutexLock lock(MutexOf(ForkLock::kEmit));
    if (the_emitter == nullptr) {
      the_emitter = new Emitter;
    }
    return *the_emitter;
  }

  EmitResult Emit(Span<const Metric> metrics) {
    if (mode_ == "segment") {
      for (const auto& [name, value] : metrics) {
        Stream(kGroup, name).Add(value);
      }
      return {};
    }
    if (mode_ != "stdout" && mode_ != "fifo") {
      return {EmitStatus::kUnknownMode, "BENCHMARK_AI is \"" + mode_ + "\"; it must be stdout, fifo or segment"};
    }
    std::string too_long;
    const std::vector<std::string> lines = EmitLines(metrics, mode_ == "fifo" ? PIPE_BUF : SIZE_MAX, &too_long);
    EmitResult result;
    if (mode_ == "stdout") {
      for (const std::string& line : lines) {
        std::fwrite(line.data(), 1, line.size(), stdout);
      }
      std::fflush(stdout);
    } else {
      result = WriteToFifo(lines);
    }
    if (result.ok() && !too_long.empty()) {
      constexpr size_t kShown = 80;
      return {EmitStatus::kNameTooLong, "the name \"" + too_long.substr(0, kShown) + "...\" has " +
                                            std::to_string(too_long.size()) + " bytes, and does not fit into a line of " +
                                            std::to_string(PIPE_BUF) + " bytes; use a shorter name"};
    }
    return result;
  }

 private:
  Emitter() : mode_(EnvOr("BENCHMARK_AI", "stdout")), paths_(PipePaths()) {}

  // The lock is not held while this thread waits, so that neither other threads nor a fork wait for it. Writing a line needs no
  // lock, since a pipe takes it as a whole.
  EmitResult WriteToFifo(const std::vector<std::string>& lines) {
    std::shared_ptr<const Pipe> pipe = Current();
    if (pipe == nullptr) {
      if (EmitResult opened = Open(pipe); !opened.ok()) return opened;
      MutexLock lock(MutexOf(ForkLock::kEmit));
      pipe_ = pipe;
    }
    const SignalConsumed no_sigpipe(SIGPIPE);
    for (const std::string& line : lines) {
      ssize_t written = 0;
      do {
        written = write(pipe->end.get(), line.data(), line.size());
      } while (written < 0 && errno == EINTR);
      if (written < 0) {
        const std::string why = errno == EPIPE ? "its reader has closed it" : std::strerror(errno);
        MutexLock lock(MutexOf(ForkLock::kEmit));
        if (pipe_ == pipe) {
          pipe_ = nullptr;  // the next call looks for another reader
        }
        return {EmitStatus::kFifoCannotBeWritten, "the named pipe \"" + pipe->path + "\" cannot be written: " + why};
      }
    }
    return {};
  }

  std::shared_ptr<const Pipe> Current() {
    MutexLock lock(MutexOf(ForkLock::kEmit));
    return pipe_;
  }

  // Waits until the pipe at one of the paths has a reader.
  EmitResult Open(std::shared_ptr<const Pipe>& pipe) const {
    const duration<double> max_wait = EnvSecondsOr("BENCHMARK_AI_FIFO_MAX_WAIT_TIME", 10);
    const duration<double> step = EnvSecondsOr("BENCHMARK_AI_FIFO_WAIT_TIME_STEP", 0.5);
    const auto began = steady_clock::now();
    for (;;) {
      const std::string* path = nullptr;
      int error = ENOENT;
      std::string why;
      for (const std::string& candidate : paths_) {
        const int failed = TryPath(candidate, pipe, why);
        if (failed == 0) return {};
        // The first path's error is reported, unless the pipe is at the other one.
        if (path == nullptr || (error == ENOENT && failed == ENXIO)) {
          path = &candidate;
          error = failed;
        }
        if (error != ENOENT && error != ENXIO) break;
      }
      if (error == EINVAL || error == EPERM) return {EmitStatus::kFifoCannotBeWritten, "\"" + *path + "\" " + why};
      if (error != ENOENT && error != ENXIO) {
        return {EmitStatus::kFifoCannotBeWritten,
                "the named pipe \"" + *path + "\" cannot be opened for writing: " + std::strerror(error)};
      }
      const duration<double> left = max_wait - (steady_clock::now() - began);
      if (left.count() <= 0) {
        const std::string time = " within " + std::to_string(max_wait.count()) + " s (BENCHMARK_AI_FIFO_MAX_WAIT_TIME)";
        return error == ENOENT
                   ? EmitResult{EmitStatus::kFifoNotCreatedInTime, "the named pipe \"" + *path + "\" did not appear" + time +
                                                                       "; the agent makes it if started with --fifo"}
                   : EmitResult{EmitStatus::kFifoNotReadInTime,
                                "no process opened the named pipe \"" + *path + "\" for reading" + time};
      }
      std::this_thread::sleep_for(std::min(step, left));
    }
  }

  const std::string mode_;
  const std::vector<std::string> paths_;  // the first one that has a pipe with a reader is used
  std::shared_ptr<const Pipe> pipe_;      // guarded by the lock
};

}  // namespace

EmitResult Emit(Span<const Metric> metrics) noexcept try {
  if (metrics.empty()) {
    return {EmitStatus::kEmptyMap, "emit got an empty map of metrics; give it at least one"};
  }
  return Emitter::Get().Emit(metrics);
} catch (const std::bad_alloc&) {
  internal::CountOutOfMemory();
  return {EmitStatus::kOutOfMemory, "out of memory"};  // short enough to need none
}

}  // namespace benchmarkai
}  // namespace abi_1
}  // namespace persia::metrics
