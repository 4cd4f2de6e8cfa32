#include "gpu/gpu_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>
#include <variant>

#include "base/result.h"
#include "base/text.h"
#include "base/thread.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kEndPoll(5);
constexpr milliseconds kReadPause(2);

std::string EndText(int status) {
  if (WIFSIGNALED(status)) {
    const char* const name = sigabbrev_np(WTERMSIG(status));
    return "crashed by SIG" + std::string(name == nullptr ? std::to_string(WTERMSIG(status)) : name);
  }
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

GpuReader::Options ReaderOptions(const std::string& library, milliseconds interval) {
  constexpr int kIntervals = 5;
  const milliseconds min_backoff = kIntervals * std::min(interval, milliseconds(1'000));
  return {.command = {"/proc/self/exe", kGpuReaderVerb, std::to_string(GpuReader::kPipe), std::to_string(interval.count()),
                      library},
          .interval = interval,
          .min_backoff = min_backoff,
          .max_backoff = 60 * min_backoff};
}

GpuReader::GpuReader(Options options)
    : options_(std::move(options)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      backoff_(options_.min_backoff, options_.max_backoff) {}

void GpuReader::Start() {
  thread_ = StartThread(
      "gpu reader", [this] { Run(); });
}

void GpuReader::Stop() {
  AskToStop();
  if (thread_.joinable()) thread_.join();
}

void GpuReader::AskToStop() { eventfd_write(stop_.get(), 1); }

bool GpuReader::HasEnded() {
  {
    const MutexLock lock(mutex_);
    if (thread_.joinable() && !is_over_) return false;
  }
  Stop();
  return pid_ <= 0 || !End().empty();
}

GpuReader::News GpuReader::Take() {
  const MutexLock lock(mutex_);
  News news = news_;
  news_.xids.clear();
  return news;
}

bool GpuReader::Sleep(milliseconds time) {
  struct pollfd stop {
    .fd = stop_.get(), .events = POLLIN, .revents = 0
  };
  return poll(&stop, 1, static_cast<int>(time.count())) == 0;
}

void GpuReader::Run() {
  Supervise();
  const MutexLock lock(mutex_);
  is_over_ = true;
}

void GpuReader::Supervise() {
  for (;;) {
    auto [kind, problem] = RunProcess();
    {
      const MutexLock lock(mutex_);
      news_.runs = false;
    }
    const std::string ended = WaitForEnd(problem.empty() ? options_.patience : options_.stop_patience);
    if (kind.empty() || !Sleep(milliseconds(0))) return;  // it was asked to stop
    if (problem.empty()) problem = "the driver's library " + (ended.empty() ? "hangs in the kernel" : ended);
    fails_ = true;
    log_.Bad(kind, "GPUs are not read: " + OneLine(problem) + "; the other metrics go on, and the agent tries again later");
    bool goes_on = Sleep(backoff_.Next());
    // If a call of the driver hangs in the kernel, only the kernel can end the process.
    while (goes_on && pid_ > 0 && End().empty()) goes_on = Sleep(options_.min_backoff);
    if (!goes_on) return;
    const MutexLock lock(mutex_);
    ++news_.restarts;
  }
}

GpuReader::Ending GpuReader::RunProcess() {
  problem_.clear();
  first_sample_.reset();
  OwnedFd pipe;
  if (std::string problem = Spawn(pipe); !problem.empty()) return {"start", std::move(problem)};
  return ReadPipe(pipe.get());
}

std::string GpuReader::Spawn(OwnedFd& pipe) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("cannot create a pipe").message;
  pipe.Reset(ends[0]);
  const OwnedFd written(ends[1]);
  fcntl(pipe.get(), F_SETFL, O_NONBLOCK);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, written.get(), kPipe);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, standard, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // A session of its own, so that a terminal's Ctrl-C does not reach it.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  std::vector<char*> arguments;
  for (const std::string& argument : options_.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return SystemError("cannot start " + options_.command[0], error).message;
  pid_ = pid;
  is_killed_ = false;
  return "";
}

// Returns why the process must be replaced. An empty kind: the reader is to stop. An empty problem: the end of the process is
// the problem.
GpuReader::Ending GpuReader::ReadPipe(int pipe) {
  GpuMessages messages;
  std::array<char, 16 << 10> bytes;
  TimePoint deadline = std::chrono::steady_clock::now() + options_.first_patience;
  milliseconds patience = options_.first_patience;
  for (;;) {
    struct pollfd waits[] = {{.fd = pipe, .events = POLLIN, .revents = 0}, {.fd = stop_.get(), .events = POLLIN, .revents = 0}};
    // Bytes that have arrived count even after the deadline: agent and process may have been stopped together.
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    const int ready = poll(waits, std::size(waits), static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (waits[1].revents != 0) return {};
    if (ready == 0)
      return {"hangs", "a call of the driver's library has not returned for " + std::to_string(patience.count() / 1000) + " s"};
    const ssize_t got = read(pipe, bytes.data(), bytes.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return problem_.empty() ? Ending("ended", "") : Ending(problem_, problem_);
    messages.Add({bytes.data(), static_cast<size_t>(got)});
    for (;;) {
      GpuMessage message;
      const Result<bool> next = messages.Next(message);
      if (!next.ok()) return {"garbage", "the reader's process wrote " + next.error()};
      if (!next.value()) break;
      Note(std::move(message));
      patience = options_.interval + options_.patience;
      deadline = std::chrono::steady_clock::now() + patience;
    }
    // Limits the time that a process which writes all the time costs.
    if (!Sleep(kReadPause)) return {};
  }
}

void GpuReader::Note(GpuMessage message) {
  if (auto* problem = std::get_if<GpuProblem>(&message)) {
    problem_ = std::move(problem->text);
    return;
  }
  if (auto* xid = std::get_if<GpuXid>(&message)) {
    const MutexLock lock(mutex_);
    if (news_.xids.size() < kMaxXids) news_.xids.push_back(std::move(*xid));
    return;
  }
  auto sample = std::make_shared<const GpuSample>(std::move(std::get<GpuSample>(message)));
  const size_t devices = sample->devices.size();
  const TimePoint now = std::chrono::steady_clock::now();
  if (!first_sample_) first_sample_ = now;
  if (!fails_ || now - *first_sample_ >= options_.max_backoff) {
    fails_ = false;
    backoff_ = Backoff(options_.min_backoff, options_.max_backoff);
    log_.Good("reading " + std::to_string(devices) + (devices == 1 ? " GPU" : " GPUs") +
              (sample->driver.empty() ? "" : ", driver " + sample->driver));
  }
  const MutexLock lock(mutex_);
  news_.sample = std::move(sample);
  news_.sampled_at = now;
  news_.runs = true;
}

std::string GpuReader::WaitForEnd(milliseconds patience) {
  TimePoint deadline = std::chrono::steady_clock::now() + patience;
  for (bool is_asked = false;;) {
    if (std::string ended = End(); !ended.empty()) return ended;
    if (std::chrono::steady_clock::now() >= deadline) return "";
    if (is_asked) {
      std::this_thread::sleep_for(kEndPoll);
    } else if (!Sleep(kEndPoll)) {
      is_asked = true;
      deadline = std::min(deadline, std::chrono::steady_clock::now() + options_.stop_patience);
    }
  }
}

std::string GpuReader::End() {
  if (pid_ <= 0) return "did not start";
  int status = 0;
  // waitpid is called before the kill, so that a process which has already ended reports its own status.
  // ECHILD means that the kernel has reaped it, because the agent was started with SIGCHLD ignored.
  const pid_t ended = options_.reap ? options_.reap(pid_, &status) : waitpid(pid_, &status, WNOHANG);
  if (ended == pid_ || (ended < 0 && errno == ECHILD)) {
    pid_ = -1;
    return ended < 0 ? "ended" : EndText(status);
  }
  if (!is_killed_) kill(pid_, SIGKILL);
  is_killed_ = true;
  return "";
}

}  // namespace persia::agent
