// The parent of the job's command and of the agent.
//
//   1. `persia-metrics-agentd exec-prepare` reads the settings and opens the job's directory. It has 2 s. If it fails or is
//      late, the command starts without metrics.
//   2. The command starts.
//   3. `persia-metrics-agentd exec-collect`, the agent, starts. It is started again whenever it dies, and never touches the
//      command.
//   4. Signals go to the command. The supervisor reaps all children, including orphans of the command, and writes their exit
//      statuses into the record that the agent reads.
//   5. When the command has ended, the agent gets SIGUSR1 and has the finish timeout for its last push. Then it gets
//      SIGKILL, and the supervisor ends with the command's exit code in any case. If another signal that asks to end arrives
//      meanwhile, the agent gets SIGTERM, which interrupts the last push.
//
// The supervisor itself has one thread. After its start it allocates nothing, opens no file but /proc/PID/stat and the named
// pipe, and waits for nothing but signals.
#pragma once

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervisor/shared_memory.h"
#include "supervisor/signals.h"

namespace persia::supervisor {

class Supervisor {
 public:
  // argv[1] is `exec`.
  Supervisor(int argc, char** argv, char** environment);

  // Returns the exit code: the command's, 128 + n if signal n ended it; if it could not be started, 126 or 127 as a shell.
  int Run();

 private:
  void Prepare();
  void TakePreparation();
  uint32_t CommandIndex() const;
  void SplitEnvironment(char** space);
  void MakeEnvironment();
  int StartCommand();
  void CloseInherited(int null);
  void StartAgent();
  pid_t ForkAgentProgram(const char* verb, int memory);
  void RetryAgentLater();
  void Reap();
  void CommandEnded(int wait_status);
  void AgentEnded(int wait_status);
  void AddToRecord(pid_t pid, uint64_t start_ticks, int wait_status);
  void Handle(int signal, const siginfo_t& info);
  void DrainPipe();
  int64_t MillisecondsToWait() const;

  const int argc_;
  char** const argv_;
  char** const inherited_environment_;
  Signals signals_;

  int preparation_memory_ = -1;  // memfds
  int record_memory_ = -1;
  Preparation* preparation_ = nullptr;
  bool prepared_ = false;  // else the command runs without metrics
  Record* record_ = nullptr;
  char** environment_;  // the command's
  char** agent_environment_ = nullptr;
  char secrets_[32768];  // its own part of them
  char** agent_argv_ = nullptr;

  pid_t command_ = 0;  // 0: it has ended
  int exit_code_ = 0;
  uint64_t early_signals_ = 0;  // bit n - 1: signal n came before the command started
  int stop_signal_ = 0;         // stops this process, too, if it stops the command
  uint64_t received_signals_ = 0;
  int expected_signal_ = 0;  // has ended the command, and may be on its way to the supervisor, too

  pid_t agent_ = 0;
  bool wants_agent_ = false;
  int64_t agent_started_at_ = 0;  // milliseconds, as all times here
  int64_t agent_down_since_ = 0;
  int64_t start_agent_at_ = 0;
  int64_t backoff_ = 0;
  int64_t finish_deadline_ = 0;
  int pipe_ = -1;    // keeps the named pipe open while no agent does
  int others_ = -1;  // the file of all supervisors of the run
};

}  // namespace persia::supervisor
