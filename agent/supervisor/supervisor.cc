#include "supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/log.h"
#include "supervisor/program.h"
#include "supervisor/secret_variables.h"

namespace persia::supervisor {
namespace {

constexpr int64_t kPrepareTimeout = 2000;
constexpr int64_t kPrepareInterval = 50;
constexpr int64_t kFirstBackoff = 100;
constexpr int64_t kMaxBackoff = 10000;
// An agent that lived this long does not die at its start.
constexpr int64_t kHealthyAge = 10000;
// How long writers of the named pipe may wait for an agent before their lines are dropped, and how often the pipe is then
// emptied.
constexpr int64_t kPipePatience = 1000;
constexpr int64_t kPipeInterval = 50;
constexpr int64_t kLongestWait = 3600000;

uint64_t NowNs(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

int64_t Now() { return static_cast<int64_t>(NowNs() / 1000000); }

template <typename T>
T* MapNew(int& memory) {
  memory = memfd_create("persia-supervisor", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, sizeof(T)) != 0) return nullptr;
  void* const mapped = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<T*>(mapped);
}

size_t Count(char** strings) {
  size_t count = 0;
  while (strings[count] != nullptr) ++count;
  return count;
}

bool SameVariable(const char* a, const char* b) {
  while (*a == *b && *a != '=' && *a != '\0') ++a, ++b;
  return *a == '=' && *b == '=';
}

// Field 22 of /proc/PID/stat; 0 if it cannot be read.
uint64_t StartTicks(pid_t pid) {
  char path[40];
  snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  char text[1024] = "";
  if (read(fd, text, sizeof text - 1) < 0) text[0] = '\0';
  close(fd);
  const char* field = strrchr(text, ')');  // field 2 is the name, which may contain anything
  for (int number = 2; field != nullptr && number < 22; ++number) field = strchr(field + 1, ' ');
  return field == nullptr ? 0 : strtoull(field + 1, nullptr, 10);
}

}  // namespace

Supervisor::Supervisor(int argc, char** argv, char** environment)
    : argc_(argc), argv_(argv), inherited_environment_(environment), environment_(environment) {}

int Supervisor::Run() {
  // A closed standard descriptor would become the number of a file of this process, into which log lines were then written.
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (null >= 0 && null <= STDERR_FILENO) null = open("/dev/null", O_RDWR | O_CLOEXEC);
  Prepare();
  if (prepared_ && preparation_->exit_code >= 0) return preparation_->exit_code;
  MakeEnvironment();
  early_signals_ = signals_.Pending();
  if (const int signal = signals_.PendingEnd(early_signals_)) return 128 + signal;
  if (const int failed = StartCommand()) return failed;
  CloseInherited(null);
  if (wants_agent_) StartAgent();
  for (;;) {
    Reap();
    if (command_ == 0 && !wants_agent_) return exit_code_;
    // If the next agent would start only after the deadline, the deadline counts as passed.
    if (command_ == 0 && (agent_ > 0 ? Now() : start_agent_at_) >= finish_deadline_) {
      Log(kWarning, "exec.finish", "the agent did not finish in %u ms; the last values may be missing",
          preparation_->finish_timeout_ms);
      return exit_code_;  // the kernel then kills the agent (PR_SET_PDEATHSIG)
    }
    if (wants_agent_ && agent_ == 0 && Now() >= start_agent_at_) StartAgent();
    if (agent_ == 0 && pipe_ >= 0 && Now() - agent_down_since_ >= kPipePatience) DrainPipe();
    siginfo_t info{};
    if (const int signal = signals_.Take(info, MillisecondsToWait())) Handle(signal, info);
  }
}

void Supervisor::Prepare() {
  preparation_ = MapNew<Preparation>(preparation_memory_);
  record_ = MapNew<Record>(record_memory_);
  // The agent's program gets a verb, a descriptor and the arguments after `exec`.
  const size_t bytes =
      (static_cast<size_t>(argc_) + 4 + Count(inherited_environment_) + sizeof(Preparation::text) / 4) * sizeof(char*);
  void* const pointers = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (preparation_ == nullptr || record_ == nullptr || pointers == MAP_FAILED)
    return Log(kError, "exec.prepare", "no memory for metrics (%s); the command runs without metrics", strerror(errno));
  agent_argv_ = static_cast<char**>(pointers);
  SplitEnvironment(agent_argv_ + argc_ + 4);
  agent_argv_[0] = argv_[0];
  for (int i = 2; i < argc_; ++i) agent_argv_[i + 1] = argv_[i];
  const pid_t preparer = ForkAgentProgram("exec-prepare", preparation_memory_);
  if (preparer < 0)
    return Log(kError, "exec.prepare", "cannot start another process (%s); the command runs without metrics", strerror(errno));
  const int64_t deadline = Now() + kPrepareTimeout;
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(preparer, &status, WNOHANG)) == 0 && Now() < deadline) {
    siginfo_t info{};
    signals_.Take(info, kPrepareInterval, SIGCHLD);
    if (signals_.PendingEnd(signals_.Pending()) != 0) return;
  }
  if (ended == 0) {
    kill(preparer, SIGKILL);
    Log(kError, "exec.prepare", "the metrics are not prepared after %d s; the command runs without metrics",
        static_cast<int>(kPrepareTimeout / 1000));
  } else if (status != 0 || preparation_->format != kFormat) {
    Log(kError, "exec.prepare", "the metrics could not be prepared (wait status 0x%x); the command runs without metrics",
        status);
  } else {
    TakePreparation();
  }
}

void Supervisor::TakePreparation() {
  prepared_ = true;
  SetUpLog(static_cast<LogLevel>(preparation_->log_level), preparation_->logs_json != 0);
  wants_agent_ = preparation_->has_agent != 0;
  record_->format = kFormat;
  record_->pipe = preparation_->pipe == 0 ? kNoPipe : preparation_->created_pipe == 0 ? kFoundPipe : kCreatedPipe;
  if (!wants_agent_) return;
  const char* const text = preparation_->text;
  if (preparation_->pipe != 0) pipe_ = open(text + preparation_->pipe, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  if (preparation_->others != 0) others_ = open(text + preparation_->others, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
}

// If the agent's program did not find it, the command begins after `--`, else at the first word that is neither a flag nor
// may be a flag's value.
uint32_t Supervisor::CommandIndex() const {
  if (preparation_ != nullptr && preparation_->command != 0) return preparation_->command;
  int i = 2;
  while (i < argc_ && argv_[i][0] == '-' && strcmp(argv_[i], "--") != 0) {
    const bool may_have_value = strchr(argv_[i], '=') == nullptr && i + 1 < argc_ && argv_[i + 1][0] != '-';
    i += may_have_value ? 2 : 1;
  }
  return static_cast<uint32_t>(i < argc_ && strcmp(argv_[i], "--") == 0 ? i + 1 : i);
}

// The agent's environment is the command's and, in front of it, the secrets. They are overwritten where `ps e` shows them.
void Supervisor::SplitEnvironment(char** space) {
  char* copy = secrets_;
  agent_environment_ = space;
  for (char** entry = inherited_environment_; *entry != nullptr; ++entry) {
    const size_t size = strlen(*entry) + 1;
    if (!HoldsSecret(*entry) || size > static_cast<size_t>(secrets_ + sizeof secrets_ - copy)) continue;
    *space++ = static_cast<char*>(memcpy(copy, *entry, size));
    copy += size;
  }
  environment_ = space;
  for (char** entry = inherited_environment_; *entry != nullptr; ++entry) {
    if (!HoldsSecret(*entry)) {
      *space++ = *entry;
      continue;
    }
    char* const value = strchr(*entry, '=') + 1;
    memset(value, 'x', strlen(value));
  }
}

// The inherited environment with the variables of the preparation.
void Supervisor::MakeEnvironment() {
  static char disabled[] = "PERSIA_METRICS_ENABLED=0";
  char* variable = prepared_ ? preparation_->text : disabled;
  if (environment_ == inherited_environment_) return;  // there was no memory
  size_t count = Count(environment_);
  for (uint32_t left = prepared_ ? preparation_->variables : 1; left > 0; --left) {
    size_t place = 0;
    while (place < count && !SameVariable(environment_[place], variable)) ++place;
    environment_[place] = variable;
    if (place == count) ++count;
    variable += strlen(variable) + 1;
  }
}

int Supervisor::StartCommand() {
  const uint32_t begin = CommandIndex();
  if (begin >= static_cast<uint32_t>(argc_)) {
    Log(kError, "command", "the command is missing: persia-metrics-agent exec [OPTIONS] -- COMMAND");
    return 2;
  }
  char** const command = argv_ + begin;
  int death_signal = 0;
  prctl(PR_GET_PDEATHSIG, &death_signal);
  if (record_ != nullptr) {
    record_->began_ns = NowNs();
    // As long as this process lives, a byte is locked. So another agent of the run knows that it is not the last.
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = off_t(record_->began_ns), .l_len = 1, .l_pid = 0};
    if (others_ >= 0) fcntl(others_, F_OFD_SETLK, &lock);
    record_->suspended_ms = static_cast<uint32_t>((NowNs(CLOCK_BOOTTIME) - record_->began_ns) / 1000000);
  }
  command_ = fork();
  if (command_ > 0) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of the command become children of this process instead of init's
    return 0;
  }
  if (command_ < 0) {
    // The system refuses a child: this process becomes the command, without the named pipe, which no agent would read.
    Log(kError, "exec.prepare", "cannot start another process (%s); the command runs without metrics", strerror(errno));
    environment_ = inherited_environment_;
  } else if (death_signal == SIGKILL) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // as the starter of this process asked; any other signal is forwarded
  }
  signals_.RestoreInChild();
  Execute(command, environment_);
  if (errno == E2BIG) Execute(command, inherited_environment_);  // its size is known to be accepted
  const int error = errno;
  Log(kError, "command", error == ENOENT ? "cannot run \"%s\": there is no such command" : "cannot run \"%s\": %s", command[0],
      strerror(error));
  _exit(ExitCodeOf(error));
}

// A descriptor that the command closes must be closed: of the descriptors that both inherited, this process keeps only stderr.
void Supervisor::CloseInherited(int null) {
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  // The numbers of `null`, the preparation, the record, the pipe and the file of all supervisors ascend.
  int kept = STDERR_FILENO + 1;
  int* const of_agent[] = {&record_memory_, &pipe_, &others_};
  for (int* const fd : of_agent) *fd = wants_agent_ && *fd >= 0 ? dup3(*fd, kept++, O_CLOEXEC) : -1;
  if (record_ != nullptr) record_->others = others_;
  if (syscall(SYS_close_range, kept, ~0U, 0) == 0) return;
  // Kernels before 5.9, and filters of system calls that do not know it, as those of Docker 20.10. Inherited numbers are low.
  while (kept < 1 << 16) close(kept++);
}

pid_t Supervisor::ForkAgentProgram(const char* verb, int memory) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  char descriptor[16];
  snprintf(descriptor, sizeof descriptor, "%d", memory);
  for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; ++standard) fcntl(standard, F_SETFD, 0);
  fcntl(memory, F_SETFD, 0);
  if (others_ >= 0) fcntl(others_, F_SETFD, 0);  // the agent unlocks this supervisor's byte when it has finished
  agent_argv_[1] = const_cast<char*>(verb);
  agent_argv_[2] = descriptor;
  // All signals stay blocked, so that one that comes early is not lost. The terminal's signals are for the command alone.
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it has died before this call
  _exit(ExecuteAgent(agent_argv_, agent_environment_));
}

void Supervisor::StartAgent() {
  __atomic_fetch_add(&record_->agent_starts, 1, __ATOMIC_RELAXED);
  agent_started_at_ = Now();
  agent_ = ForkAgentProgram("exec-collect", record_memory_);
  if (agent_ > 0) return;
  agent_ = 0;
  RetryAgentLater();
  Log(kError, "exec.agent", "cannot start the agent (%s); the command continues, and the agent is tried again in %d ms",
      strerror(errno), static_cast<int>(backoff_));
}

void Supervisor::RetryAgentLater() {
  const bool is_first = backoff_ == 0 || Now() - agent_started_at_ >= kHealthyAge;
  backoff_ = is_first ? kFirstBackoff : backoff_ * 2 < kMaxBackoff ? backoff_ * 2 : kMaxBackoff;
  start_agent_at_ = Now() + backoff_;
}

void Supervisor::Reap() {
  siginfo_t info{};
  // Reaped only after its start time is read: reaping removes it from /proc.
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    const pid_t pid = info.si_pid;
    const uint64_t start_ticks = StartTicks(pid);
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) return;
    pid == agent_ ? AgentEnded(status) : AddToRecord(pid, start_ticks, status);
    if (pid == command_) CommandEnded(status);
    info.si_pid = 0;
  }
  // With the command, as a shell expects of a job. If the command handles Ctrl-Z, it continues, and so does this process.
  if (stop_signal_ != 0 && waitid(P_PID, command_, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0) {
    signals_.StopBy(stop_signal_);
    stop_signal_ = 0;
  }
}

void Supervisor::AddToRecord(pid_t pid, uint64_t start_ticks, int wait_status) {
  if (record_ == nullptr) return;
  EndedChild& child = record_->children[record_->child_count % Record::kMaxChildren];
  __atomic_store_n(&child.pid, static_cast<uint32_t>(pid), __ATOMIC_RELEASE);
  __atomic_store_n(&child.wait_status, wait_status, __ATOMIC_RELEASE);
  __atomic_store_n(&child.start_ticks, start_ticks, __ATOMIC_RELEASE);
  __atomic_store_n(&record_->child_count, record_->child_count + 1, __ATOMIC_RELEASE);
}

void Supervisor::CommandEnded(int wait_status) {
  command_ = 0;
  const int signal = WTERMSIG(wait_status);  // 0: none
  exit_code_ = signal != 0 ? 128 + signal : WEXITSTATUS(wait_status);
  // A Ctrl-C goes to the whole process group. If it has ended the command before this process saw it, it does not count as a
  // second.
  if (signal != 0 && (received_signals_ >> (signal - 1) & 1) == 0) expected_signal_ = signal;
  if (!wants_agent_) return;
  record_->exit_code = exit_code_;
  __atomic_store_n(&record_->ended_ns, NowNs(), __ATOMIC_RELEASE);
  finish_deadline_ = Now() + preparation_->finish_timeout_ms;
  start_agent_at_ = 0;  // a dead one is started immediately, to finish
  if (agent_ > 0) kill(agent_, SIGUSR1);
}

void Supervisor::AgentEnded(int wait_status) {
  agent_ = 0;
  agent_down_since_ = Now();
  if (wait_status == 0) {
    wants_agent_ = false;  // it has finished, or another agent collects
    if (others_ >= 0) close(others_);
    return;
  }
  RetryAgentLater();
  const int signal = WTERMSIG(wait_status);
  Log(kWarning, "exec.agent",
      "the agent ended by %s %d and is started again in %d ms; the command continues, and no count is lost",
      signal != 0 ? "signal" : "exit code", signal != 0 ? signal : WEXITSTATUS(wait_status), static_cast<int>(backoff_));
}

void Supervisor::Handle(int signal, const siginfo_t& info) {
  // Sent by this process: a write to a closed pipe.
  if (signal == SIGCHLD || (info.si_pid == getpid() && info.si_code <= 0)) return;
  const uint64_t bit = uint64_t{1} << (signal - 1);
  received_signals_ |= bit;
  const bool is_end = signals_.PendingEnd(bit) != 0;
  if (is_end && record_ != nullptr && NowNs() >= record_->shutdown_until_ns) {
    record_->end_signal = static_cast<uint32_t>(signal) | (info.si_code == SI_KERNEL ? kFromTerminal : 0);
    __atomic_store_n(&record_->shutdown_until_ns, NowNs() + kShutdownNs, __ATOMIC_RELEASE);
  }
  if (command_ != 0) {
    const bool has_it = Signals::IsForGroup(signal, info) && (early_signals_ & bit) == 0 && getpgid(command_) == getpgrp();
    early_signals_ &= ~bit;
    if (!has_it && (info.si_code != SI_QUEUE || sigqueue(command_, signal, info.si_value) != 0)) kill(command_, signal);
    if (signal == SIGCONT) stop_signal_ = 0;
    if (signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) stop_signal_ = signal;
  } else if (signal == expected_signal_) {
    expected_signal_ = 0;
  } else if (is_end && signal != SIGHUP) {
    if (agent_ > 0) kill(agent_, SIGTERM);  // the second signal: the agent ends its last push
    wants_agent_ = wants_agent_ && agent_ > 0;
  }
}

// Without an agent, writers would wait for a reader in vain.
void Supervisor::DrainPipe() {
  char lines[4096];
  // Bounded, since a writer may never stop.
  for (int left = 16; left > 0 && read(pipe_, lines, sizeof lines) > 0;) --left;
}

int64_t Supervisor::MillisecondsToWait() const {
  const int64_t now = Now();
  int64_t until = command_ == 0 ? finish_deadline_ : now + kLongestWait;
  if (wants_agent_ && agent_ == 0 && start_agent_at_ < until) until = start_agent_at_;
  if (agent_ == 0 && pipe_ >= 0 && now + kPipeInterval < until) until = now + kPipeInterval;
  return until - now;
}

}  // namespace persia::supervisor
