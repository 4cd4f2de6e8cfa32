// The command `top`. It reads no settings: the agents that it asks may be those of other jobs and hosts.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "cli/commands.h"
#include "top/fleet.h"
#include "top/frame.h"
#include "top/screen.h"
#include "top/targets.h"

namespace persia::agent {
namespace {

// Longer than Fleet::Options::timeout: an agent that does not answer is shown as such.
constexpr std::chrono::seconds kOncePatience(5);
// A line of a pipe is not cut, unless an agent sends nonsense.
constexpr size_t kOnceWidth = 400;

// Returns the exit code.
int PrintOnce(Fleet& fleet, Charset charset) {
  fleet.AwaitAnswers(kOncePatience);
  const std::vector<AgentView> views = fleet.Views();
  const Frame frame = BuildFrame(views, {}, {.width = kOnceWidth, .height = 0, .charset = charset, .clock = ClockText()});
  for (const FrameLine& line : frame.lines)
    std::fprintf(stdout, "%s\n", line.text.substr(0, line.text.find_last_not_of(' ') + 1).c_str());
  std::fflush(stdout);
  return views.empty() ? kExitFailed : kExitDone;
}

}  // namespace

int TopCommand(const TopArguments& arguments) {
  for (const std::string& address : arguments.addresses) {
    if (const Status good = CheckTopAddress(address); !good.ok()) {
      std::fprintf(stderr, "persia-metrics-agent: %s\n", good.error().c_str());
      return kExitUsage;
    }
  }
  SetUpLog(LogLevel::kError, LogFormat::kText);
  const Charset charset = CharsetOfLocale();
  bool once = arguments.once;
  if (const auto problem = once ? std::nullopt : ProblemOfTerminal()) {
    // A script that reads the output needs no such line.
    if (isatty(STDOUT_FILENO) != 0)
      std::fprintf(stderr, "persia-metrics-agent: %s: one frame is printed, as with --once\n", problem->c_str());
    once = true;
  }
  const bool local = arguments.addresses.empty();
  Fleet::Options options{.interval = arguments.interval};
  options.find_interval = local ? std::chrono::seconds(2) : std::chrono::seconds(30);
  options.access.username = arguments.username;
  options.access.password_file = arguments.password_file;
  options.access.ca_file = arguments.ca_file;
  options.access.server_name = arguments.server_name;
  options.access.insecure_skip_verify = arguments.insecure;
  const auto finder = std::make_shared<TargetFinder>(arguments.addresses, LocalJobsFolder());
  int signal = 0;
  int exit_code = kExitDone;
  std::string error;
  {
    Fleet fleet(options, [finder] { return finder->Find(); });
    if (once) {
      exit_code = PrintOnce(fleet, charset);
    } else {
      const Result<int> ended = RunScreen(fleet, arguments.interval, charset);
      if (ended.ok()) signal = ended.value();
      if (!ended.ok()) error = ended.error();
    }
  }
  if (!error.empty()) {
    std::fprintf(stderr, "persia-metrics-agent: %s\n", error.c_str());
    return kExitFailed;
  }
  // The caller learns of the signal, as from a program without a handler.
  if (signal != 0) std::raise(signal);
  return exit_code;
}

}  // namespace persia::agent
