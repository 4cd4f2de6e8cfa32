#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "app/collection.h"
#include "app/gateway_setup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/commands.h"
#include "format/scrape_renderer.h"

namespace persia::agent {
namespace {

// The agent's metrics that describe the job. All others, persia_agent_*, count what an agent does over time.
constexpr std::string_view kOfTheJob[] = {"persia_agent_build_info",
                                          "persia_agent_dropped_series",
                                          "persia_agent_quarantined_series",
                                          "persia_agent_retired_processes_total",
                                          "persia_agent_retired_series_dropped_total",
                                          "persia_agent_segment_records_skipped_total",
                                          "persia_agent_segments",
                                          "persia_agent_segments_broken",
                                          "persia_agent_segments_refused"};

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
  std::erase_if(layout.families, [](const FamilyLayout& family) {
    return family.name.starts_with("persia_agent_") && std::ranges::find(kOfTheJob, family.name) == std::end(kOfTheJob);
  });
  return {std::make_shared<const Layout>(std::move(layout)), all.values, all.collected_at};
}

}  // namespace

int OnceCommand(const Config& config) {
  const AgentSetup setup = SetupOf(config.options);
  SystemClock clock;
  OwnMetrics own({.identity = AgentIdentity(setup), .version = setup.version});
  EventLog event_log({});
  Collection collection(setup, clock, own, event_log);
  const std::shared_ptr<const Snapshot> all = collection.Collect("");
  const SegmentSourceStats segments = collection.summary().segments;
  if (segments.live + segments.dead == 0) {
    LogWarning("workers.none", "no worker's metrics are in " + setup.directory +
                                   "; workers need PERSIA_METRICS_DIR or PERSIA_JOB_NAME in their environment");
  }
  TextRenderer renderer;
  std::string text;
  renderer.Render(OfTheJob(*all), text, NameEscaping::kUnderscores);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? kExitDone : kExitFailed;
}

}  // namespace persia::agent
