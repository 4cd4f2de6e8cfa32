#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/job_agent.h"
#include "job/turns.h"
#include "model/ends.h"
#include "supervisor/shared_memory.h"

namespace persia::agent {
namespace {

// How often an agent that waits looks whether the other one has ended.
constexpr std::chrono::milliseconds kTurnInterval(200);

// The session of the agent that collects. Null: there is nothing to do.
std::optional<Result<JobSession>> AwaitSession(const CommandLine& line, const Config& config, const ExecRecord& record,
                                               const Place& place, SignalReader& signals) {
  return BeginInTurn(config.options, kLockPatience, StarterOf(line),
                     {.place = place,
                      .is_restarted = record.state().agent_restarts > 0,
                      .command_has_ended = [&] { return record.CommandExitCode().has_value(); },
                      .pause =
                          [&] {
                            const auto signal = signals.Next(std::chrono::steady_clock::now() + kTurnInterval);
                            return signal && signal->IsEnd();
                          },
                      .on_wait =
                          [](const JobSession& session) {
                            const std::string page = session.page().empty() ? "" : ", with its page on " + session.page() + "/";
                            LogInfo("agent.waits", "the command runs, and the agent with pid " + *session.other_agent() +
                                                       " collects its values" + page +
                                                       "; this agent goes on when that one ends");
                          }});
}

}  // namespace

int CollectForExec(const CommandLine& line, const Config& config, const ConfigSources& sources, int memory) {
  // As the supervisor asked, too. The kernel forgets that if the program's file gives it capabilities (setcap) or another
  // group.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
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
  // systemd and Slurm send SIGTERM to all processes of a service or step: the supervisor says which one ends the last push.
  SignalReader signals(getppid());
  const Place place{.fd = shared.others, .number = shared.began_ns};
  if (place.fd >= 0) fcntl(place.fd, F_SETFD, FD_CLOEXEC);
  auto begun = AwaitSession(line, config, record, place, signals);
  if (!begun) return kExitDone;
  Result<JobSession>& session = *begun;
  if (!session.ok()) {
    LogError("directory.refused", session.error());
    return kExitFailed;
  }
  if (session.value().run_is_over()) {
    LogInfo("agent.aside", "run " + session.value().run_id() + " is over");
    return kExitDone;
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
  if (!receiver.ok()) LogError("fifo", receiver.error());
  JobAgent agent({.config = config,
                  .sources = sources,
                  .session = session.value(),
                  .receiver = receiver.ok() ? std::move(receiver).value() : nullptr,
                  .exec = &record});
  if (const Status listening = agent.Listen(); !listening.ok())
    LogError("web", listening.error() + "; the pages are not served");
  agent.Start();
  // The supervisor sends SIGUSR1 once the command's end is in the record.
  while (!record.CommandExitCode()) signals.Next();
  const auto exit_code = record.CommandExitCode();
  const std::optional<Interruption> interruption = record.interruption();
  // A person or a scheduler that interrupts a job does not want to wait, also if it is the command alone.
  const bool is_interrupted = interruption || exit_code == 128 + SIGINT || exit_code == 128 + SIGTERM;
  if (config.options.linger.count() > 0 && !is_interrupted) agent.Linger(signals, record.ended_at() + config.options.linger);
  // A person who presses Ctrl-C is done with the run; a scheduler may start the job again. Of a job that never came to its
  // first metric, nothing could go on.
  const bool is_ended = exit_code == 0 || (interruption && interruption->from_terminal);
  const auto is_complete = [&] { return is_ended || !agent.HadWorkers(); };
  EndTurn(
      session.value(),
      {.place = place, .is_complete = is_complete, .deletes_groups = config.options.on_job_end == OnJobEnd::kDelete},
      [&](bool deletes_groups) {
        agent.Finish(signals, deletes_groups);
        if (!session.value().HasOthers(place.number)) agent.TellOfLiving();
      },
      [&] { agent.EndRun(); });
  agent.WriteReport();  // last: a disk that hangs delays nothing else
  return kExitDone;
}

}  // namespace persia::agent
