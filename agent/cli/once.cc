#include <cstdio>
#include <string>

#include "app/agent_setup.h"
#include "base/log.h"
#include "cli/commands.h"
#include "format/scrape_renderer.h"
#include "job/job_session.h"
#include "workers/segment_source.h"

namespace persia::agent {

int OnceCommand(const Config& config) {
  const AgentOptions& options = config.options;
  const JobView job = ViewJob(options);
  SegmentSource source({.directory = job.directory,
                        .job = options.job_name,
                        .ip_addr = options.ip_addr,
                        .run_id = job.run_id,
                        .group = job.group,
                        .max_segment_bytes = options.max_segment_bytes,
                        .ledger = {.file = job.state, .read_only = true, .run_id = job.run_id}},
                       NamingOf(options));
  source.SetIdentityLabels(options.labels, "");
  const std::shared_ptr<const Snapshot> workers = source.Collect();
  for (const Diagnostic& diagnostic : source.TakeDiagnostics()) {
    LogWarning("segments." + diagnostic.kind, diagnostic.text);
  }
  if (source.stats().live + source.stats().dead == 0) {
    LogWarning("workers.none", "no worker's metrics are in " + job.directory +
                                   "; workers need PERSIA_METRICS_DIR or PERSIA_JOB_NAME in their environment");
  }
  TextRenderer renderer;
  std::string text;
  renderer.Render(*workers, text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? kExitDone : kExitFailed;
}

}  // namespace persia::agent
