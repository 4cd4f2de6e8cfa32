// How new settings reach an agent at work: each thread takes them over at a point of its own choosing.
#include <algorithm>
#include <utility>

#include "app/agent.h"

namespace persia::agent {

void Agent::Reconfigure(const AgentOptions& fresh) {
  const std::lock_guard one(reconfiguring_);
  TakeOver(fresh);
}

void Agent::GatewaysMoved() {
  const std::lock_guard one(reconfiguring_);
  TakeOver(*CurrentOptions());
}

// Under reconfiguring_.
void Agent::TakeOver(const AgentOptions& fresh) {
  lanes_.SetPace(PaceOf(fresh));
  // Gateways first: the collection that follows goes to where these settings say.
  if (routes_.changes && routes_.changes(fresh)) {
    lanes_.Use([&] { return routes_.take(fresh); });
  } else if (routes_.retry_refused) {
    routes_.retry_refused();
  }
  {
    const std::lock_guard lock(options_mutex_);
    options_ = std::make_shared<const AgentOptions>(fresh);
  }
  collector_.SetInterval(fresh.push_interval);
}

std::shared_ptr<const AgentOptions> Agent::CurrentOptions() {
  const std::lock_guard lock(options_mutex_);
  return options_;
}

// In the collector's thread, before it collects: whatever limits or labels what is collected is set here.
void Agent::TakeOverForCollecting() {
  auto options = CurrentOptions();
  if (options == collecting_with_) {
    return;
  }
  if (options->labels != collecting_with_->labels) {
    labels_ = IdentityLabels(options->labels);
    worker_labels_ = IdentityLabels(options->labels);
    own_labels_ = IdentityLabels(options->labels);
    exec_labels_ = IdentityLabels(options->labels);
  }
  SetLimits(*options);
  history_.SetOptions({options->history, options->history_max_bytes});
  segments_.SetNaming(NamingOf(*options));
  remote_.Apply(*options);
  collecting_with_ = std::move(options);
  push_next_tick_ = true;
}

// Under scrape_mutex_.
void Agent::TakeOverForScraping() {
  auto options = CurrentOptions();
  if (options->labels != scraping_with_->labels) {
    scrape_labels_ = IdentityLabels(options->labels);
  }
  scraping_with_ = std::move(options);
}

ServerResponse Agent::ReloadByHttp() {
  if (!setup_.options.enable_lifecycle) {
    return {.status = 403, .body = "Reloading by HTTP is off; enable_lifecycle: true, read at the start, turns it on.\n"};
  }
  const std::vector<std::string> errors = setup_.reload();
  if (errors.empty()) {
    return {.body = "Reloaded.\n"};
  }
  std::string body = "Not reloaded, the settings in use stay:\n";
  for (const std::string& error : errors) {
    body += error + "\n";
  }
  return {.status = 500, .body = std::move(body)};
}

}  // namespace persia::agent
