#include "persia/metrics/emit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "emit_lines.h"
#include "fork_safe_mutex.h"
#include "json.h"
#include "persia/metrics/stream.h"

namespace persia::metrics::benchmarkai {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr char kDefaultPath[] = "/tmp/benchmark-ai-fifo";
constexpr char kGroup[] = "benchmarkai";
constexpr double kLongestWait = 365 * 86400.0;  // much more is none that a clock can tell

// A write to a pipe without a reader raises SIGPIPE, which ends the process: here it is an error like others.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    const int error = errno;
    if (!pending_) {
      const timespec now{};
      while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool pending_;
};

std::string Variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

duration<double> Seconds(const char* name, double otherwise) {
  const std::string text = Variable(name, "");
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool good = error == std::errc() && end == text.data() + text.size() && std::isfinite(seconds) && seconds >= 0;
  return duration<double>(good ? std::min(seconds, kLongestWait) : otherwise);
}

struct Descriptor {
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() { close(fd); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int fd;
};

// Where values go, as the environment said at the first call. Never destroyed: values are emitted after main.
class Emitter {
 public:
  static Emitter& Get() {
    static Emitter& emitter = *new Emitter;
    return emitter;
  }

  EmitResult Emit(std::span<const Metric> metrics) {
    if (mode_ == "segment") {
      for (const auto& [name, value] : metrics) {
        Stream(kGroup, name).Add(value);
      }
      return {};
    }
    if (mode_ != "stdout" && mode_ != "fifo") {
      return {EmitStatus::kUnknownMode, "BENCHMARK_AI is \"" + mode_ + "\"; it has to be stdout, fifo or segment"};
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
                                            std::to_string(PIPE_BUF) + " bytes; give it a shorter one"};
    }
    return result;
  }

 private:
  Emitter() : mode_(Variable("BENCHMARK_AI", "stdout")), path_(Variable("BENCHMARK_AI_FIFO_FILEPATH", kDefaultPath)) {}

  // The lock is never held while something is waited for: neither other threads nor a fork shall wait with this one. Lines
  // need none, since a pipe takes each as a whole.
  EmitResult WriteToFifo(const std::vector<std::string>& lines) {
    std::shared_ptr<const Descriptor> pipe = OpenPipe();
    if (pipe == nullptr) {
      if (EmitResult opened = Open(pipe); !opened.ok()) {
        return opened;
      }
      const std::lock_guard lock(mutex_);
      pipe_ = pipe;
    }
    const NoSigpipe no_sigpipe;
    for (const std::string& line : lines) {
      ssize_t written = 0;
      do {
        written = write(pipe->fd, line.data(), line.size());
      } while (written < 0 && errno == EINTR);
      if (written < 0) {
        const std::string why = errno == EPIPE ? "its reader has gone" : std::strerror(errno);
        const std::lock_guard lock(mutex_);
        if (pipe_ == pipe) {
          pipe_ = nullptr;  // the next call looks for another reader
        }
        return {EmitStatus::kFifoCannotBeWritten, "the named pipe \"" + path_ + "\" cannot be written: " + why};
      }
    }
    return {};
  }

  std::shared_ptr<const Descriptor> OpenPipe() {
    const std::lock_guard lock(mutex_);
    return pipe_;
  }

  // Without blocking at first, since opening a pipe that nobody reads would wait for ever.
  EmitResult Open(std::shared_ptr<const Descriptor>& pipe) const {
    const duration<double> most = Seconds("BENCHMARK_AI_FIFO_MAX_WAIT_TIME", 10);
    const duration<double> step = Seconds("BENCHMARK_AI_FIFO_WAIT_TIME_STEP", 0.5);
    const auto began = steady_clock::now();
    for (;;) {
      const int fd = open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      const int error = errno;
      if (fd >= 0) {
        pipe = std::make_shared<const Descriptor>(fd);
        struct stat info {};
        if (fstat(fd, &info) != 0 || !S_ISFIFO(info.st_mode)) {
          return {EmitStatus::kFifoCannotBeWritten,
                  "\"" + path_ + "\" is not a named pipe; BENCHMARK_AI_FIFO_FILEPATH has to name one"};
        }
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        return {};
      }
      if (error != ENOENT && error != ENXIO) {
        return {EmitStatus::kFifoCannotBeWritten,
                "the named pipe \"" + path_ + "\" cannot be opened for writing: " + std::strerror(error)};
      }
      const duration<double> left = most - (steady_clock::now() - began);
      if (left.count() <= 0) {
        const std::string time = " within " + std::to_string(most.count()) + " s (BENCHMARK_AI_FIFO_MAX_WAIT_TIME)";
        return error == ENOENT
                   ? EmitResult{EmitStatus::kFifoNotCreatedInTime, "there was no named pipe \"" + path_ + "\"" + time +
                                                                       "; the agent makes it if told to by --fifo"}
                   : EmitResult{EmitStatus::kFifoNotReadInTime,
                                "nobody opened the named pipe \"" + path_ + "\" for reading" + time};
      }
      std::this_thread::sleep_for(std::min(step, left));
    }
  }

  const std::string mode_;
  const std::string path_;
  ForkSafeMutex<Emitter> mutex_;
  std::shared_ptr<const Descriptor> pipe_;
};

}  // namespace

std::vector<std::string> EmitLines(std::span<const Metric> metrics, size_t limit, std::string* too_long) {
  constexpr size_t kEnd = 2;  // "}\n"
  std::vector<std::string> lines;
  std::string line;
  for (const auto& [name, value] : metrics) {
    std::string entry;
    json::AppendString(entry, name);
    entry += ": ";
    json::AppendNumber(entry, value);
    if (1 + entry.size() + kEnd > limit) {
      if (too_long->empty()) {
        *too_long = name;
      }
      continue;
    }
    if (!line.empty() && line.size() + 2 + entry.size() + kEnd > limit) {
      lines.push_back(line + "}\n");
      line.clear();
    }
    line += (line.empty() ? "{" : ", ") + entry;
  }
  if (!line.empty()) {
    lines.push_back(line + "}\n");
  }
  return lines;
}

EmitResult Emit(std::span<const Metric> metrics) {
  if (metrics.empty()) {
    return {EmitStatus::kEmptyMap, "an empty map of metrics was given to emit; there has to be one at least"};
  }
  return Emitter::Get().Emit(metrics);
}

}  // namespace persia::metrics::benchmarkai
