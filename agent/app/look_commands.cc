// The commands that only look: once, check-config.
#include <cstdio>
#include <string>

#include "app/agent.h"
#include "app/commands.h"
#include "app/identity_labels.h"
#include "app/job_session.h"
#include "app/log.h"
#include "app/settings.h"
#include "format/text_format.h"
#include "model/combine.h"
#include "source/segment_source.h"

namespace persia::agent {

int OnceCommand(const Config& config) {
  if (!config.errors.empty()) {
    for (const std::string& error : config.errors) {
      LogError("config.refused", error);
    }
    return kExitNotUnderstood;
  }
  const AgentOptions& options = config.options;
  const JobView job = LookAt(options);
  SegmentSource source({.directory = job.directory,
                        .job = options.job_name,
                        .ip_addr = options.ip_addr,
                        .run_id = job.run_id,
                        .group = job.group,
                        .max_segment_bytes = options.max_segment_bytes,
                        .retired = {.file = job.state, .look_only = true, .run_id = job.run_id}},
                       NamingOf(options));
  const auto workers = source.Collect();
  for (const Diagnostic& diagnostic : source.TakeDiagnostics()) {
    LogWarning("segments." + diagnostic.kind, diagnostic.text);
  }
  if (source.stats().live + source.stats().dead == 0) {
    LogWarning("workers.none", "no worker's metrics are in " + job.directory +
                                   "; workers need PERSIA_METRICS_DIR or PERSIA_JOB_NAME in their environment");
  }
  IdentityLabels labels(options.labels);
  SnapshotCombiner combiner([](const std::string& message) { LogWarning("metrics.left_out", message); });
  TextRenderer renderer;
  std::string text;
  renderer.Render(*combiner.Combine({workers.ok() ? labels.AddTo(workers.value()) : nullptr}), text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? kExitDone : kExitFailed;
}

int CheckConfigCommand(const Config& config) {
  for (const std::string& error : config.errors) {
    std::fprintf(stderr, "%s\n", error.c_str());
  }
  if (!config.errors.empty()) {
    return kExitNotUnderstood;
  }
  for (const std::string& note : config.notes) {
    std::printf("# %s\n", note.c_str());
  }
  std::printf("# %s\n", config.file.empty() ? "no file; flags, environment and defaults" : (config.file + ": good").c_str());
  for (const Setting& setting : Settings()) {
    const std::string value = setting.get(config.options);
    std::printf("%-24s %s\n", (std::string(setting.key.empty() ? setting.flag.substr(2) : setting.key) + ":").c_str(),
                value.empty() ? ("(" + std::string(setting.default_text) + ")").c_str() : value.c_str());
  }
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? kExitDone : kExitFailed;
}

}  // namespace persia::agent
