#include "emit_pipe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
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
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "descriptor.h"
#include "fork_locks.h"
#include "signal_consumed.h"
#include "trusted_file.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace benchmarkai {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;
using Interrupted = std::function<bool()>;

constexpr const char* kDefaultPaths[] = {"/tmp/benchmark-ai/fifo", "/tmp/benchmark-ai-fifo"};  // now, and before September 2019
constexpr double kMaxWait = 365 * 86400.0;  // in seconds; a much longer one would overflow the clock's type

struct Pipe {
  std::string path;
  Descriptor end;
};
using SharedPipe = std::shared_ptr<const Pipe>;

constinit SharedPipe* kept = nullptr;  // guarded by the lock; the open pipe. Never destroyed: metrics are emitted after main

SharedPipe KeptPipe() {
  MutexLock lock(MutexOf(ForkLock::kEmit));
  return kept == nullptr ? nullptr : *kept;
}

void Keep(const SharedPipe& pipe) {
  MutexLock lock(MutexOf(ForkLock::kEmit));
  if (kept == nullptr) kept = new SharedPipe;
  *kept = pipe;
}

duration<double> SecondsOr(const char* name, double fallback) {
  const std::string text = EnvOr(name, "");
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool good = error == std::errc() && end == text.data() + text.size() && std::isfinite(seconds) && seconds >= 0;
  return duration<double>(good ? std::min(seconds, kMaxWait) : fallback);
}

std::optional<gid_t> TrustedGroup() {
  const std::string text = EnvOr("PERSIA_METRICS_DIR_GROUP", "");
  gid_t group = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), group);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number ? std::optional(group) : std::nullopt;
}

// Opens a pipe that has a reader. Its owner could read what is emitted: another user's is refused, unless its group is
// PERSIA_METRICS_DIR_GROUP. Null: the result says why.
SharedPipe OpenPipe(const std::string& path, PipeResult* result) {
  const StandardDescriptorsTaken taken;
  // A blocking open of a pipe without a reader would wait forever.
  std::unique_ptr<const Pipe> pipe(new Pipe{path, Descriptor(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC))});
  const int fd = pipe->end.get();
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) {
    const int error = errno;
    *result = {EmitStatus::kFifoCannotBeWritten, error, path,
               std::string("cannot be opened for writing: ") + std::strerror(error)};
    return nullptr;
  }
  std::string why = DistrustOf(info, {.type = S_IFIFO, .group = TrustedGroup(), .may_have_names = true});
  if (!why.empty()) {
    why +=
        "; set BENCHMARK_AI_FIFO_FILEPATH to a pipe of this user or, to trust a pipe's group, PERSIA_METRICS_DIR_GROUP to "
        "the group's number";
    *result = {EmitStatus::kFifoCannotBeWritten, S_ISFIFO(info.st_mode) ? EPERM : EINVAL, path, std::move(why)};
    return nullptr;
  }
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return pipe;
}

bool MayCome(int error) { return error == ENOENT || error == ENXIO; }

// Opens the first of the paths that has a pipe with a reader.
SharedPipe OpenFirst(PipeResult* result) {
  const std::string named = EnvOr("BENCHMARK_AI_FIFO_FILEPATH", "");
  const std::vector<std::string> paths =
      named.empty() ? std::vector<std::string>(std::begin(kDefaultPaths), std::end(kDefaultPaths)) : std::vector{named};
  *result = {};
  for (const std::string& path : paths) {
    PipeResult failed;
    if (SharedPipe pipe = OpenPipe(path, &failed)) return pipe;
    // The first path's error is reported, unless the pipe is at the other one.
    if (result->error == 0 || (result->error == ENOENT && failed.error == ENXIO)) *result = std::move(failed);
    if (!MayCome(result->error)) break;
  }
  return nullptr;
}

PipeResult TooLate(const PipeResult& last, double seconds) {
  char wait[80];
  std::snprintf(wait, sizeof wait, " within %g s (BENCHMARK_AI_FIFO_MAX_WAIT_TIME)", seconds);
  if (last.error == ENXIO) return {EmitStatus::kFifoNotReadInTime, ETIMEDOUT, last.path, std::string("had no reader") + wait};
  return {EmitStatus::kFifoNotCreatedInTime, ETIMEDOUT, last.path,
          std::string("did not appear") + wait + "; the agent makes it if started with --fifo"};
}

// Waits until a pipe has a reader. Null: the result says why.
SharedPipe AwaitPipe(const Interrupted& interrupted, PipeResult* result) {
  const duration<double> max_wait = SecondsOr("BENCHMARK_AI_FIFO_MAX_WAIT_TIME", 10);
  const duration<double> step = SecondsOr("BENCHMARK_AI_FIFO_WAIT_TIME_STEP", 0.5);
  const auto began = steady_clock::now();
  for (;;) {
    if (SharedPipe pipe = OpenFirst(result)) return pipe;
    if (!MayCome(result->error)) return nullptr;
    const double left = (max_wait - (steady_clock::now() - began)).count();
    if (left <= 0) {
      *result = TooLate(*result, max_wait.count());
      return nullptr;
    }
    const double pause = std::min(step.count(), left);
    const auto whole = static_cast<time_t>(pause);
    const timespec time = {whole, static_cast<long>((pause - static_cast<double>(whole)) * 1e9)};
    nanosleep(&time, nullptr);  // a signal ends it
    if (interrupted && interrupted()) {
      result->error = EINTR;
      return nullptr;
    }
  }
}

// Returns the error's number, or 0.
int WriteLine(const Pipe& pipe, const std::string& line, const Interrupted& interrupted) {
  while (write(pipe.end.get(), line.data(), line.size()) < 0) {
    if (errno != EINTR) return errno;
    if (interrupted && interrupted()) return EINTR;
  }
  return 0;
}

// Writing a line needs no lock, since a pipe takes it as a whole.
PipeResult WriteLines(const std::vector<std::string>& lines, const Interrupted& interrupted) {
  PipeResult result;
  SharedPipe pipe = KeptPipe();
  if (pipe == nullptr) {
    pipe = AwaitPipe(interrupted, &result);
    if (pipe == nullptr) return result;
    Keep(pipe);
  }
  const SignalConsumed no_sigpipe(SIGPIPE);
  for (const std::string& line : lines) {
    int error = WriteLine(*pipe, line, interrupted);
    if (error == EPIPE) {
      // A new reader gets the line; without one, this fails immediately.
      if (SharedPipe fresh = OpenPipe(pipe->path, &result)) {
        Keep(pipe = std::move(fresh));
        error = WriteLine(*pipe, line, interrupted);
      } else if (!MayCome(result.error)) {
        return result;
      }
    }
    if (error != 0) {
      const char* why = error == EPIPE ? "its reader has closed it" : std::strerror(error);
      return {EmitStatus::kFifoCannotBeWritten, error, pipe->path, std::string("cannot be written: ") + why};
    }
  }
  return {};
}

}  // namespace

std::string EnvOr(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? fallback : value;
}

std::vector<std::string> EmitLines(std::span<const std::string> entries, size_t limit, std::string* too_long) {
  constexpr size_t kEnd = 2;  // "}\n"
  std::vector<std::string> lines;
  std::string line;
  for (const std::string& entry : entries) {
    if (1 + entry.size() + kEnd > limit) {
      if (too_long->empty()) *too_long = entry;
      continue;
    }
    if (!line.empty() && line.size() + 2 + entry.size() + kEnd > limit) {
      lines.push_back(line + "}\n");
      line.clear();
    }
    line += (line.empty() ? "{" : ", ") + entry;
  }
  if (!line.empty()) lines.push_back(line + "}\n");
  return lines;
}

PipeResult WriteToPipe(std::span<const std::string> entries, const std::function<bool()>& interrupted) try {
  std::string too_long;
  PipeResult result = WriteLines(EmitLines(entries, PIPE_BUF, &too_long), interrupted);
  if (result.error != 0 || too_long.empty()) return result;
  constexpr size_t kShown = 80;
  return {EmitStatus::kNameTooLong,
          EMSGSIZE,
          {},
          "a name does not fit into a line of " + std::to_string(PIPE_BUF) + " bytes; use a shorter one than " +
              too_long.substr(0, kShown) + "..."};
} catch (const std::bad_alloc&) {
  return {EmitStatus::kOutOfMemory, ENOMEM, {}, "out of memory"};  // short enough to need none
}

}  // namespace benchmarkai
}  // namespace abi_1
}  // namespace persia::metrics
