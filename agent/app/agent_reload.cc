// How new settings reach an agent at work: each thread takes them over at a point of its own choosing.
#include <algorithm>
#include <utility>

#include "app/agent.h"

namespace persia::agent {

void Agent::Reconfigure(const AgentOptions& fresh) {
  const auto options = std::make_shared<const AgentOptions>(fresh);
  const auto former = CurrentOptions();
  const bool other_gateway = former->gateway_address != fresh.gateway_address ||
                             !(former->gateway_access == fresh.gateway_access) ||
                             former->connect_timeout != fresh.connect_timeout || former->push_timeout != fresh.push_timeout;
  {
    const std::lock_guard lock(options_mutex_);
    if (other_gateway && transport_.cut_short) {
      // What is under way goes to where nobody wants it any more. Before the new settings are there to be taken over: it must
      // not be the new gateway that is cut short.
      transport_.cut_short();
    }
    options_ = options;
  }
  pusher_.SetLimits(fresh.push_timeout, std::min(fresh.push_timeout, fresh.connect_timeout));
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
  collecting_with_ = std::move(options);
  push_next_tick_ = true;
}

// In the push thread, before it pushes.
void Agent::TakeOverForPushing() {
  auto options = CurrentOptions();
  if (options == pushing_with_) {
    return;
  }
  if (transport_.reconfigure) {
    pushing_to_ = transport_.reconfigure(*options);
    if (!pushing_to_.empty()) {
      own_.AddGateway(pushing_to_);
    }
    const std::lock_guard lock(options_mutex_);
    gateway_name_ = pushing_to_;
  }
  pushing_with_ = std::move(options);
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
