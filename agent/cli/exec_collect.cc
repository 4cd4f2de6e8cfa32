#include <sys/mman.h>

#include <memory>
#include <string>
#include <utility>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/job_agent.h"
#include "model/exit_reason.h"
#include "supervisor/shared_memory.h"

namespace persia::agent {

int CollectForExec(const CommandLine& line, const Config& config, const ConfigSources& sources, int memory) {
  void* const mapped = mmap(nullptr, sizeof(supervisor::Record), PROT_READ, MAP_SHARED, memory, 0);
  if (mapped == MAP_FAILED) {
    LogError("exec.record", SystemError("cannot map the supervisor's memory").message);
    return kExitFailed;
  }
  const auto& shared = *static_cast<const supervisor::Record*>(mapped);
  if (shared.format != supervisor::kFormat) {
    LogError("exec.record",
             "the supervisor of this job is of another version, whose record has format " + std::to_string(shared.format) +
                 ", not " + std::to_string(supervisor::kFormat) +
                 ": the job's metrics are exported again once that version of persia-metrics-agentd is installed, "
                 "or the job is restarted");
    return kExitFailed;
  }
  ExecRecord record(shared);
  SignalReader signals;
  auto session = JobSession::Begin(config.options, kLockPatience, StarterOf(line));
  if (!session.ok()) {
    LogError("directory.refused", session.error());
    return kExitFailed;
  }
  if (session.value().other_agent() || !session.value().other_job().empty()) {
    LogWarning("agent.aside", OtherAgentMessage(session.value()));
    return kExitDone;
  }
  // The supervisor's preparation has logged why there is no pipe.
  auto pipe = record.pipe() == supervisor::kNoPipe
                  ? Result<std::unique_ptr<NamedPipe>>(nullptr)
                  : OpenEmitPipe(config.options, /*remove=*/record.pipe() == supervisor::kCreatedPipe);
  auto receiver = pipe.ok() ? StartEmitReceiver(config.options, session.value(), std::move(pipe).value())
                            : Result<std::unique_ptr<EmitReceiver>>(Error{pipe.error()});
  if (!receiver.ok()) {
    LogError("fifo", receiver.error());
  }
  JobAgent agent({.config = config,
                  .sources = sources,
                  .session = session.value(),
                  .receiver = receiver.ok() ? std::move(receiver).value() : nullptr,
                  .exec = &record});
  if (const Status listening = agent.Listen(); !listening.ok()) {
    LogError("web", listening.error() + "; the pages are not served");
  }
  agent.Start();
  // The supervisor sends SIGUSR1 once the command's end is in the record.
  while (!record.CommandExitCode()) {
    signals.Next();
  }
  const auto exit_code = record.CommandExitCode();
  // Whoever interrupts a job does not want to wait.
  if (config.options.linger.count() > 0 && !IsInterruption(*exit_code)) {
    agent.Linger(signals, record.ended_at() + config.options.linger);
  }
  agent.Finish(signals, config.options.on_job_end == OnJobEnd::kDelete);
  if (exit_code == 0) {
    agent.EndRun();
  }
  agent.WriteReport();  // last: a disk that hangs delays nothing else
  return kExitDone;
}

}  // namespace persia::agent
