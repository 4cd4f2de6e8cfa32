#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "app/agent_setup.h"
#include "app/collection.h"
#include "base/log.h"
#include "base/timing.h"
#include "base/version.h"
#include "cli/commands.h"
#include "format/scrape_renderer.h"
#include "model/remote_write_counts.h"

namespace persia::agent {
namespace {

// The agent's metrics that describe the job and the settings. All others, persia_agent_*, count what an agent does over time.
constexpr std::string_view kOfTheJob[] = {"persia_agent_build_info",
                                          "persia_agent_dropped_series",
                                          "persia_agent_max_series",
                                          "persia_agent_metrics_dir_free_bytes",
                                          "persia_agent_metrics_dir_size_bytes",
                                          "persia_agent_push_interval_seconds",
                                          "persia_agent_quarantined_series",
                                          "persia_agent_remote_write_queue_max_bytes",
                                          "persia_agent_retired_processes_total",
                                          "persia_agent_retired_series_dropped_total",
                                          "persia_agent_segment_records_skipped_total",
                                          "persia_agent_segments",
                                          "persia_agent_segments_broken",
                                          "persia_agent_segments_refused",
                                          "persia_agent_series"};
// Judged by many collections.
constexpr std::string_view kOfManyCollections[] = {"persia_job_hang_after_seconds", "persia_job_hung",
                                                   "persia_job_unchanged_seconds"};

bool IsShown(const std::string& family) {
  const auto is_in = [&](const auto& list) { return std::ranges::find(list, family) != std::end(list); };
  return !is_in(kOfManyCollections) && (!family.starts_with("persia_agent_") || is_in(kOfTheJob));
}

AgentSetup SetupOf(const AgentOptions& options) {
  AgentSetup setup;
  setup.options = options;
  setup.version = kVersion;
  setup.view = ViewJob(options);
  setup.directory = setup.view->directory;
  setup.run_id = setup.view->run_id;
  setup.group = setup.view->group;
  setup.ip_addr = options.ip_addr.empty() ? OwnAddress(options) : options.ip_addr;
  return setup;
}

Snapshot OfTheJob(const Snapshot& all) {
  Layout layout = *all.layout;
  std::erase_if(layout.families, [](const FamilyLayout& family) { return !IsShown(family.name); });
  return {std::make_shared<const Layout>(std::move(layout)), all.values, all.collected_at};
}

}  // namespace

int OnceCommand(const Config& config) {
  const AgentSetup setup = SetupOf(config.options);
  if (!setup.view->refusal.empty()) {
    LogError("directory.refused", setup.view->refusal);
    return kExitFailed;
  }
  SystemClock clock;
  OwnMetrics own({.identity = AgentIdentity(setup), .version = setup.version});
  EventLog event_log({});
  const History no_history({.span = std::chrono::milliseconds(0)});
  Collection collection(setup, clock, own, event_log, no_history);
  std::map<std::string, RemoteWriteCounts> targets;
  for (const RemoteWriteTarget& target : config.options.remote_write)
    targets[target.name].queue_max_bytes = target.queue_max_bytes;
  own.SetRemoteWrite(targets);
  collection.Collect("");
  // The number of series is that of the collection before.
  const std::shared_ptr<const Snapshot> all = collection.Collect("");
  const SegmentSourceStats segments = collection.summary().segments;
  if (segments.live + segments.dead == 0) {
    LogWarning("workers.none", "no worker's metrics are in " + setup.directory +
                                   "; workers need PERSIA_METRICS_DIR or PERSIA_JOB_NAME in their environment");
  }
  TextRenderer renderer;
  std::string text;
  renderer.Render(OfTheJob(*all), text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? kExitDone : kExitFailed;
}

}  // namespace persia::agent
