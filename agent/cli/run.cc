#include <csignal>
#include <memory>
#include <utility>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/job_agent.h"
#include "job/turns.h"

namespace persia::agent {
namespace {

// Waits for a signal that asks to end (false), or until it is woken because no worker is alive (true). SIGHUP reloads the
// settings, unless it comes from a terminal that hung up.
bool WaitUntilIdle(SignalReader& signals, Reloader* reloader) {
  for (;;) {
    const auto signal = signals.Next();
    if (!signal) return true;
    const int number = signal->number;
    if (number == SIGHUP && !signal->from_terminal && reloader != nullptr) {
      reloader->Reload();
      continue;
    }
    const bool ends = signal->IsEnd() || (number == SIGHUP && signal->from_terminal);
    if (ends && !SignalReader::InheritedAsIgnored(number)) return false;
  }
}

}  // namespace

int RunCommand(const CommandLine& line, const Config& config, const ConfigSources& sources) {
  if (RefusedBySettings(config, line.strict, "the agent ends")) return kExitUsage;
  auto session = JobSession::Begin(config.options, kLockPatience);
  if (!session.ok() || session.value().other_agent() || !session.value().other_job().empty()) {
    LogError("directory.refused", session.ok() ? OtherAgentMessage(session.value()) : session.error());
    return kExitFailed;
  }
  session.value().NoteCollecting(true);
  if (!session.value().state_error().empty()) {
    LogError("directory.refused", session.value().state_error());
    if (line.strict) return kExitFailed;
  }
  SignalReader signals;
  if (!config.options.enable_metrics) {
    LogInfo("metrics.disabled", "metrics are disabled (enable_metrics: false); nothing is collected");
    if (!line.exit_when_idle) WaitUntilIdle(signals, nullptr);  // an orchestrator would restart a process that ends
    return kExitDone;
  }
  auto pipe = OpenEmitPipe(config.options);
  auto receiver = pipe.ok() ? StartEmitReceiver(config.options, session.value(), std::move(pipe).value())
                            : Result<std::unique_ptr<EmitReceiver>>(Error{pipe.error()});
  if (!receiver.ok()) {
    LogError("fifo", receiver.error());
    if (line.strict) return kExitFailed;
  }
  JobAgent agent({.config = config,
                  .sources = sources,
                  .session = session.value(),
                  .receiver = receiver.ok() ? std::move(receiver).value() : nullptr,
                  .idle_limit = line.exit_when_idle,
                  .on_idle = [&signals] { signals.Wake(); }});
  if (const Status listening = agent.Listen(); !listening.ok()) {
    LogError("web", listening.error() + (line.strict ? "" : "; the pages are not served"));
    if (line.strict) return kExitFailed;
  }
  agent.Start();
  const bool idle = WaitUntilIdle(signals, &agent.reloader());
  EndTurn(
      session.value(),
      {.is_complete = [idle] { return idle; }, .deletes_groups = idle && config.options.on_job_end == OnJobEnd::kDelete},
      [&](bool deletes_groups) { agent.Finish(signals, deletes_groups); }, [&] { agent.EndRun(); });
  agent.WriteReport();
  return kExitDone;
}

}  // namespace persia::agent
