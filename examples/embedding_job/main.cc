// embedding_job: see README.md.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "job_error.h"
#include "launcher.h"
#include "ledger.h"
#include "options.h"
#include "persia/metrics/metrics.h"
#include "report.h"
#include "role.h"
#include "stop_signal.h"

namespace embedding_job {
namespace {

constexpr int kUsageError = 2;

std::string Environment(const char* name, std::string_view otherwise) {
  const char* value = std::getenv(name);
  return std::string(value == nullptr || *value == 0 ? otherwise : value);
}

// As the metrics library finds it.
int ReplicaIndex() {
  const std::string text = Environment("REPLICA_INDEX", Environment("RANK", "0"));
  int replica = 0;
  std::from_chars(text.data(), text.data() + text.size(), replica);
  return replica;
}

std::string Run(const RoleContext& context) {
  switch (context.options.role) {
    case Role::kDataLoader:
      RunDataLoader(context);
      return "";
    case Role::kEmbeddingWorker:
      RunEmbeddingWorker(context);
      return "";
    case Role::kEmbeddingServer:
      RunEmbeddingServer(context);
      return "";
    default:
      return RunTrainer(context);
  }
}

void RunOne(const Options& options) {
  StopSignal stop;
  stop.CatchSignals();
  const std::string role(NameOf(options.role));
  const int replica = ReplicaIndex();
  persia::metrics::Init({.job_name = "embedding_job", .role = role, .replica = replica});
  persia::metrics::events::Record(kOwnGroup, "start", {{"role", std::string_view(role)}, {"replica", int64_t{replica}}});

  Ledger ledger(Environment("PERSIA_ROLE", role), replica);
  const RoleContext context{.options = options, .stop = stop, .ledger = ledger, .replica = replica};
  std::string job_fields;
  std::exception_ptr failure;
  try {
    job_fields = Run(context);
  } catch (const StoppedEarly& stopped) {
    context.Say(stopped.what());
  } catch (...) {
    failure = std::current_exception();
  }
  if (!options.report.empty()) {
    const ReportPart part = ledger.Part(job_fields);
    if (options.report_part)
      WriteReportPart(options.report, part);
    else
      WriteReport(options.report, {part});
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

void RoleContext::Say(std::string_view text) const {
  const std::string line = std::string(NameOf(options.role)) + " " + std::to_string(replica) + ": " + std::string(text) + "\n";
  // In one call, so that lines of several processes do not interleave.
  std::fputs(line.c_str(), stderr);
}

}  // namespace embedding_job

int main(int argc, char** argv) {
  using namespace embedding_job;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  Options options;
  try {
    options = ParseOptions(arguments);
  } catch (const JobError& error) {
    std::fprintf(stderr, "embedding_job: %s\n", error.what());
    return kUsageError;
  }
  if (options.help) {
    std::fputs(HelpText().c_str(), stdout);
    return 0;
  }
  try {
    if (options.role == Role::kAll) return RunAll(options, arguments);
    RunOne(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "embedding_job: %s: %s\n", std::string(NameOf(options.role)).c_str(), error.what());
    return 1;
  }
}
