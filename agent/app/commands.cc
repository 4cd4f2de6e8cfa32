#include "app/commands.h"
#include "app/beside.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>

#include "app/agent.h"
#include "app/clock.h"
#include "app/exec_command.h"
#include "app/gateway_routes.h"
#include "app/gateway_setup.h"
#include "app/inlet.h"
#include "app/job_session.h"
#include "app/log.h"
#include "app/reload.h"
#include "app/signals.h"
#include "app/text.h"
#include "app/version.h"

namespace persia::agent {
namespace {

// How long the end waits for the addresses of gateways that were never known.
constexpr std::chrono::seconds kFirstAnswer(3);

// What an agent at work needs, alive as long as it is.
struct Works {
  SystemClock clock;
  std::unique_ptr<GroupLedger> ledger;
  std::unique_ptr<GatewayNames> names;
  std::unique_ptr<GatewayRoutes> gateways;
  std::unique_ptr<EmitInlet> inlet;
  std::unique_ptr<Reloader> reloader;  // before the agent, whose pages call it
  std::unique_ptr<Agent> agent;
};

// How `run` hears that it may end.
struct IdleWatch {
  std::optional<std::chrono::milliseconds> limit;
  std::function<void()> passed;
};

std::unique_ptr<GroupLedger> OpenLedger(const JobSession& session) {
  const StatePlace place = session.state_place();
  return std::make_unique<GroupLedger>(GroupLedger::Options{.directory_fd = place.directory_fd,
                                                            .directory = place.directory,
                                                            .name = place.Name("groups"),
                                                            .mode = place.mode,
                                                            .run_id = session.run_id(),
                                                            .log = SinkToLog()});
}

std::unique_ptr<Works> SetUpWorks(const AgentOptions& options, const ConfigSources& sources, JobSession& session,
                                  std::unique_ptr<EmitInlet> inlet, IdleWatch idle = {}, const ExecRecord* exec = nullptr) {
  auto works = std::make_unique<Works>();
  works->inlet = std::move(inlet);
  works->ledger = OpenLedger(session);
  GroupLedger* const ledger = works->ledger.get();
  works->names = std::make_unique<GatewayNames>(LookUps([made = works.get()](bool good) { made->agent->NoteLookup(good); }));
  works->gateways = std::make_unique<GatewayRoutes>(
      options, *works->names,
      [ledger](const AgentOptions& now, const GatewayPlace& place) { return MakeGateway(now, place, *ledger); });
  PushRoutes routes = works->gateways->Routes();
  routes.agent_label = [ledger] { return ledger->stands_aside() ? ledger->agent_id() : ""; };
  Agent::Setup setup;
  setup.options = options;
  setup.version = kVersion;
  setup.directory = session.directory().path();
  setup.run_id = session.run_id();
  setup.group = session.directory().group();
  setup.state = session.state_place();
  setup.session = &session;
  setup.run_begins = !session.continued();
  setup.ip_addr = options.ip_addr.empty() ? OwnAddress(options) : options.ip_addr;
  setup.idle_limit = idle.limit;
  setup.on_idle = std::move(idle.passed);
  setup.exec = exec;
  setup.inlet = works->inlet.get();
  setup.reload = [reloading = works.get()] { return reloading->reloader->Reload(); };
  works->agent = std::make_unique<Agent>(std::move(setup), works->clock, std::move(routes));
  works->reloader = std::make_unique<Reloader>(
      Reloader::Options{.sources = sources,
                        .current = options,
                        .apply =
                            [agent = works->agent.get(), names = works->names.get()](const AgentOptions& fresh) {
                              agent->Reconfigure(fresh);
                              names->LookUpNow();
                            },
                        .note = [agent = works->agent.get()](bool good) { agent->NoteReload(good); }});
  return works;
}

void StartWorks(Works& works) {
  works.agent->Start();
  works.names->Start([agent = works.agent.get()] { agent->GatewaysMoved(); });
}

void LogStart(const Agent& agent, const Config& config, const JobSession& session) {
  for (const std::string& note : config.notes) {
    LogWarning("config.note", note);
  }
  const AgentOptions& options = config.options;
  const std::string pages = agent.listening_at();
  LogInfo("agent.started",
          "job " + Quoted(options.job_name) + (session.continued() ? " goes on with run " : " begins run ") + session.run_id() +
              ", workers in " + session.directory().path() + ", gateway " + options.gateway_address +
              (pages.empty() ? "" : (agent.listens_with_tls() ? ", pages on https://" : ", pages on http://") + pages + "/") +
              (config.file.empty() ? "" : ", settings from " + config.file));
}

// The last collection and push, and what becomes of the groups if the job has ended with it. A signal that asks to end means:
// at once; but for the first `expected`, which is known of already.
void Finish(Works& works, SignalReader& signals, bool delete_groups, int expected = 0) {
  Agent& agent = *works.agent;
  std::atomic<bool> done = false;
  Beside ending;
  ending.Run([&] {
    works.names->AwaitFirst(kFirstAnswer);  // a short job's last values have nowhere to go before
    works.names->Stop();
    if (works.inlet != nullptr) {
      works.inlet->Stop();  // what is left in the pipe belongs to the last collection
    }
    const auto series = delete_groups ? RemoteWrite::Ending::kEnds : RemoteWrite::Ending::kGoesOn;
    if (const Status arrived = agent.Finish(series); !arrived.ok()) {
      LogWarning("push.last", "the last values did not arrive at " + arrived.error());
    }
    if (delete_groups) {
      const Status ended = agent.EndGroups();
      ended.ok() ? LogInfo("groups.end", "the job has ended, and with it its groups on the gateway")
                 : LogWarning("groups.end", ended.error());
    }
    done = true;
    signals.Wake();
  });
  while (!done) {
    const auto signal = signals.Next();
    if (signal && signal->number == expected) {
      expected = 0;
    } else if (signal && (signal->number == SIGTERM || signal->number == SIGINT || signal->number == SIGQUIT)) {
      agent.Interrupt();
    }
  }
  ending.Join();
}

void EndRun(JobSession& session) {
  const auto removed = session.EndRun();
  if (!removed.ok()) {
    LogWarning("run.end", removed.error());
    return;
  }
  LogInfo("run.ended", "run " + session.run_id() + " is over; " + std::to_string(removed.value()) + " segments removed");
}

std::string AsideLine(const JobSession& session) {
  std::string line = "the agent with pid " + *session.other_agent() + " collects in " + session.directory().path();
  if (session.other_run()) {
    return line + " for another run; run " + session.run_id() +
           " is not collected: give it a job name or a metrics_dir of its own";
  }
  return line + " already; this one stands aside";
}

// One line for all that is wrong.
std::string Summary(const std::vector<std::string>& errors) {
  return errors.front() +
         (errors.size() > 1 ? " (and " + std::to_string(errors.size() - 1) + " more: check-config lists them)" : "");
}

// How the command is to be run.
struct Plan {
  std::vector<std::pair<std::string, std::string>> environment{{"PERSIA_METRICS_ENABLED", "0"}};
  std::optional<JobSession> session;  // whose metrics this agent collects
  bool refused = false;
};

// Whatever fails here costs the metrics, not the command; each with one line.
Plan MakePlan(const CommandLine& line, const Config& config) {
  Plan plan;
  if (!config.errors.empty()) {
    plan.refused = line.strict;
    LogError("config.refused", Summary(config.errors) + (line.strict ? "; the command is not started (--strict)"
                                                                     : "; the command runs without metrics"));
    return plan;
  }
  if (!config.page_errors.empty() && !config.options.listen_address.empty()) {
    LogError("web", Summary(config.page_errors) +
                        (line.strict ? "; the command is not started (--strict)" : "; the pages are not served"));
    if (line.strict) {
      plan.refused = true;
      return plan;
    }
  }
  auto session = JobSession::Begin(config.options);
  if (!session.ok()) {
    plan.refused = line.strict && config.options.enable_metrics;
    LogError("directory.refused", session.error() + (plan.refused ? "; the command is not started (--strict)"
                                                                  : "; the command runs without metrics"));
    return plan;
  }
  plan.environment = session.value().WorkerEnvironment();
  for (auto& variable : InletEnvironment(config.options)) {
    plan.environment.push_back(std::move(variable));
  }
  if (!config.options.enable_metrics) {
    LogInfo("metrics.disabled", "metrics are disabled (enable_metrics: false); the command runs, nothing is collected");
  } else if (session.value().other_agent()) {
    LogWarning("agent.aside", AsideLine(session.value()));
  } else {
    plan.session = std::move(session).value();
  }
  return plan;
}

}  // namespace

int ExecuteCommand(const CommandLine& line, const Config& config, const ConfigSources& sources) {
  if (line.command.empty()) {
    std::fputs("persia-metrics-agent exec: the command is missing: persia-metrics-agent exec [OPTIONS] -- COMMAND\n", stderr);
    return kExitNotUnderstood;
  }
  Plan plan = MakePlan(line, config);
  if (plan.refused) {
    return kExitRefused;
  }
  SignalReader signals;
  auto started = ExecCommand::Start(line.command, plan.environment, signals);
  if (const auto* failure = std::get_if<ExecCommand::Failure>(&started)) {
    LogError("command", failure->message);
    return failure->exit_code;
  }
  ExecCommand& command = std::get<ExecCommand>(started);
  if (!plan.session) {
    return command.Wait(signals);
  }
  ExecRecord record;
  auto inlet = OpenInlet(config.options, *plan.session);
  if (!inlet.ok()) {
    LogError("fifo", inlet.error());
  }
  const std::unique_ptr<Works> works =
      SetUpWorks(config.options, sources, *plan.session, inlet.ok() ? std::move(inlet).value() : nullptr, {}, &record);
  // What the pages lack for is said already.
  if (const Status listening = config.page_errors.empty() ? works->agent->Listen() : Status(Done{}); !listening.ok()) {
    LogError("web", listening.error() + "; the pages are not served");
  }
  LogStart(*works->agent, config, *plan.session);
  StartWorks(*works);
  const int exit_code = command.Wait(signals, [&record](const EndedChild& child) {
    record.ChildEnded(static_cast<uint32_t>(child.pid), child.start_ticks, child.wait_status);
  });
  record.CommandEnded(exit_code);
  Finish(*works, signals, config.options.on_job_end == OnJobEnd::kDelete, command.SignalOnItsWay(exit_code));
  if (exit_code == 0) {
    EndRun(*plan.session);
  }
  return exit_code;
}

int RunCommand(const CommandLine& line, const Config& config, const ConfigSources& sources) {
  if (!config.errors.empty()) {
    for (const std::string& error : config.errors) {
      LogError("config.refused", error);
    }
    return kExitNotUnderstood;
  }
  auto session = JobSession::Begin(config.options);
  if (!session.ok() || session.value().other_agent()) {
    LogError("directory.refused", session.ok() ? AsideLine(session.value()) : session.error());
    return kExitFailed;
  }
  SignalReader signals;
  const auto wait = [&](Reloader* reloader) {
    for (;;) {
      const auto signal = signals.Next();
      if (!signal) {
        return true;  // woken: idle for long enough
      }
      // A hang-up that somebody sends is the old way to say "read your settings again", and no reason to end.
      if (signal->number == SIGHUP && !signal->from_terminal && reloader != nullptr) {
        reloader->Reload();
        continue;
      }
      const bool ends = signal->number == SIGTERM || signal->number == SIGINT || signal->number == SIGQUIT ||
                        (signal->number == SIGHUP && signal->from_terminal);
      if (ends && !SignalReader::InheritedAsIgnored(signal->number)) {
        return false;
      }
    }
  };
  if (!config.options.enable_metrics) {
    LogInfo("metrics.disabled", "metrics are disabled (enable_metrics: false); nothing is collected");
    // Whoever restarts what ends would only start it again.
    if (!line.exit_when_idle) {
      wait(nullptr);
    }
    return kExitDone;
  }
  auto inlet = OpenInlet(config.options, session.value());
  if (!inlet.ok()) {
    LogError("fifo", inlet.error());
    return kExitFailed;
  }
  const std::unique_ptr<Works> works = SetUpWorks(config.options, sources, session.value(), std::move(inlet).value(),
                                                  {.limit = line.exit_when_idle, .passed = [&signals] { signals.Wake(); }});
  if (const Status listening = works->agent->Listen(); !listening.ok()) {
    LogError("web", listening.error());
    return kExitFailed;
  }
  LogStart(*works->agent, config, session.value());
  StartWorks(*works);
  const bool idle = wait(works->reloader.get());
  Finish(*works, signals, idle && config.options.on_job_end == OnJobEnd::kDelete);
  if (idle) {
    EndRun(session.value());
  }
  return kExitDone;
}

}  // namespace persia::agent
