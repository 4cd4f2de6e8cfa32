// What the agent serves: /metrics, whether it is well, and a page for people.
#include <algorithm>
#include <utility>

#include "app/agent.h"

namespace persia::agent {
namespace {

// A scrape takes the newest collection if it is not older.
constexpr std::chrono::milliseconds kScrapeAge{1000};
// A collector that is silent for longer, and for three intervals, is stuck.
constexpr std::chrono::milliseconds kStuckAfter{30'000};

double Seconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

std::shared_ptr<const std::string> Agent::Exposition() {
  const std::shared_ptr<const Snapshot> snapshot = collector_.NoOlderThan(kScrapeAge);
  const std::lock_guard lock(scrape_mutex_);
  if (snapshot == nullptr || snapshot == rendered_) {
    return snapshot == nullptr ? nullptr : exposition_;
  }
  TakeOverForScraping();
  const auto process = process_.Collect();
  auto all = scrape_combiner_.Combine({snapshot, process.ok() ? scrape_labels_.AddTo(process.value()) : nullptr});
  if (const std::string id = transport_.agent_label ? transport_.agent_label() : ""; !id.empty() && !agent_label_) {
    agent_label_.emplace(Labels{{"agent", id}});
  }
  if (agent_label_) {
    all = agent_label_->AddTo(all);
  }
  const auto began = std::chrono::steady_clock::now();
  auto text = std::make_shared<std::string>();
  renderer_.Render(*all, *text);
  own_.RenderDone(Seconds(std::chrono::steady_clock::now() - began));
  rendered_ = snapshot;
  exposition_ = std::move(text);
  return exposition_;
}

StatusPage Agent::Page() {
  const Pusher::State state = pusher_.state();
  StatusPage page;
  page.version = setup_.version;
  page.job = setup_.options.job_name;
  page.run_id = setup_.run_id;
  page.directory = setup_.directory;
  page.push_interval_seconds = Seconds(CurrentOptions()->push_interval);
  page.pushes = state.pushes;
  page.pushes_failed = state.failed;
  page.last_success = state.last_success;
  page.since_success =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - state.last_success_steady);
  page.last_error = state.last_error;
  {
    const std::lock_guard lock(options_mutex_);
    page.gateway = gateway_name_;
  }
  const std::lock_guard lock(seen_mutex_);
  page.workers = seen_.segments.live;
  page.workers_ended = seen_.segments.dead;
  page.segments_refused = seen_.segments.refused.size();
  page.series = seen_.series;
  return page;
}

std::vector<Route> Agent::Routes() {
  const auto metrics = [this](const ServerRequest&) {
    const std::shared_ptr<const std::string> text = Exposition();
    if (text == nullptr) {
      return ServerResponse{.status = 503, .body = "Ending.\n"};
    }
    own_.ScrapeDone();
    return ServerResponse{.content_type = std::string(TextRenderer::kContentType), .body = *text};
  };
  const auto healthy = [this](const ServerRequest&) {
    return collector_.AliveWithin(std::max(kStuckAfter, 3 * CurrentOptions()->push_interval))
               ? ServerResponse{.body = "Healthy.\n"}
               : ServerResponse{.status = 503, .body = "Not healthy: collecting does not come to its end.\n"};
  };
  const auto ready = [this](const ServerRequest&) {
    return collector_.Newest() != nullptr ? ServerResponse{.body = "Ready.\n"}
                                          : ServerResponse{.status = 503, .body = "Not ready: nothing is collected yet.\n"};
  };
  const auto page = [this](const ServerRequest&) {
    return ServerResponse{.content_type = "text/html; charset=utf-8",
                          .body = RenderStatusPage(Page()),
                          .headers = {{"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"},
                                      {"X-Content-Type-Options", "nosniff"},
                                      {"Cache-Control", "no-store"}}};
  };
  const auto reload = [this](const ServerRequest&) { return ReloadByHttp(); };
  const auto events = [this](const ServerRequest& request) {
    const auto query = EventLog::ParseQuery(request.query);
    if (!query.ok()) {
      return ServerResponse{.status = 400, .body = query.error() + "\n"};
    }
    return ServerResponse{.content_type = "application/json",
                          .body = event_log_.Answer(query.value()),
                          .headers = {{"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}}};
  };
  return {{"POST", "/-/reload", reload},  {"GET", "/api/v1/events", events}, {"GET", "/metrics", metrics},
          {"GET", "/-/healthy", healthy}, {"GET", "/-/ready", ready},        {"GET", "/", page}};
}

}  // namespace persia::agent
