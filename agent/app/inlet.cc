#include "app/inlet.h"

#include <cstdlib>

#include "app/log.h"
#include "app/text.h"
#include "persia/metrics/init.h"

namespace persia::agent {
namespace {

constexpr char kModeVariable[] = "BENCHMARK_AI";
constexpr char kPathVariable[] = "BENCHMARK_AI_FIFO_FILEPATH";
// Of the agent's own segment, if PERSIA_ROLE does not say another one.
constexpr char kRole[] = "benchmarkai";

}  // namespace

Result<std::unique_ptr<EmitInlet>> OpenInlet(const AgentOptions& options, const JobSession& session) {
  if (options.fifo.empty()) {
    return std::unique_ptr<EmitInlet>();
  }
  // The library asks the environment first, and that may be of another job than the flags are.
  for (const auto& [name, value] : session.WorkerEnvironment()) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  setenv("REPLICA_INDEX", std::to_string(options.replica).c_str(), 1);
  const metrics::InitResult own = metrics::Init({.role = kRole});
  if (!own.exporting) {
    return Error{"the named pipe " + options.fifo + " is not read: " + own.detail};
  }
  auto inlet = std::make_unique<EmitInlet>(
      EmitInlet::Options{.path = options.fifo, .warn = [](const std::string& message, std::string_view line) {
                           LogWarning("fifo.line", message + (line.empty() ? "" : ": " + Quoted(line)));
                         }});
  if (Status started = inlet->Start(); !started.ok()) {
    return Error{started.error()};
  }
  return inlet;
}

std::vector<std::pair<std::string, std::string>> InletEnvironment(const AgentOptions& options) {
  std::vector<std::pair<std::string, std::string>> environment;
  const char* mode = std::getenv(kModeVariable);
  if (!options.fifo.empty() && (mode == nullptr || *mode == '\0')) {
    environment = {{kModeVariable, "fifo"}, {kPathVariable, options.fifo}};
  }
  return environment;
}

}  // namespace persia::agent
