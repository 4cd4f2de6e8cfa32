// Shared memory of the supervisor and the agent's program. Each struct is in a memfd that the supervisor makes and its child
// inherits, so that neither can block the other.
//
// Included by programs of different C libraries: only the types and the layout stated here.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace persia::supervisor {

constexpr uint32_t kFormat = 3;

enum LogLevel : uint32_t { kDebug, kInfo, kWarning, kError, kOff };

// Written by `persia-metrics-agentd exec-prepare`, read by the supervisor once that process has ended with 0.
struct Preparation {
  uint32_t format;     // kFormat
  int32_t exit_code;   // end with it instead of starting the command; -1: start it
  uint32_t command;    // index of the command's first word in the supervisor's argv; 0: not known. Valid before the end.
  uint32_t has_agent;  // whether an agent is to be started
  uint32_t finish_timeout_ms;
  uint32_t log_level;  // a LogLevel
  uint32_t logs_json;
  uint32_t pipe;          // where in `text` the path of the named pipe begins; 0: there is none
  uint32_t created_pipe;  // whether exec-prepare created that pipe
  uint32_t others;        // where in `text` the path of the file of all supervisors of the run begins; 0: there is none
  uint32_t variables;     // how many of the strings in `text`, each NAME=VALUE, are for the command's environment
  char text[65536 - 44];  // strings, each with its NUL: the variables, then the paths
};
static_assert(sizeof(Preparation) == 65536);

// Whether the agent is to read the named pipe, and to remove it at the end.
enum PipeState : uint32_t { kNoPipe, kFoundPipe, kCreatedPipe };

// A terminal sends its signals by the kernel: a person has pressed a key.
constexpr uint32_t kFromTerminal = 256;
// For how long the job may take to end. What ends later does so for another reason.
constexpr uint64_t kShutdownNs = 300'000'000'000;

// Its members are stored with release and loaded with acquire. So if one is overwritten while it is read, the reader sees that
// by Record::child_count.
struct EndedChild {
  uint32_t pid;
  int32_t wait_status;   // as of waitpid(2)
  uint64_t start_ticks;  // distinguishes it from other processes with the same pid; 0: not known
};

// Written by the supervisor, mapped read-only by `persia-metrics-agentd exec-collect`. Times are of CLOCK_MONOTONIC.
struct Record {
  static constexpr uint64_t kMaxChildren = 1000;

  uint32_t format;        // kFormat; another one if the programs were upgraded while the job runs
  uint32_t pipe;          // a PipeState
  uint64_t began_ns;      // before the command's start
  uint64_t agent_starts;  // how often an agent was started
  int32_t others;         // the agent's descriptor of the file of all supervisors, shared with this one; -1: none
  uint32_t end_signal;    // by which the job was asked to end, + kFromTerminal if so; of several, the first one
  int32_t exit_code;      // the command's, 128 + n if signal n ended it; valid once ended_ns is set
  uint32_t suspended_ms;  // for how long the machine was suspended before began_ns, which CLOCK_MONOTONIC does not count
  uint64_t ended_ns;      // 0: it is running. Stored with release, after exit_code.
  // When the signal to end came, + kShutdownNs; 0: none has. Stored with release, after end_signal.
  uint64_t shutdown_until_ns;
  // All children that were reaped, except agents: number n is in children[n % kMaxChildren] while n + kMaxChildren >
  // child_count.
  uint64_t child_count;  // stored with release, after the child
  EndedChild children[kMaxChildren];
};
static_assert(sizeof(Record) == 64 + Record::kMaxChildren * 16);

}  // namespace persia::supervisor
