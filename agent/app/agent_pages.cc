// What the agent serves: /metrics, whether it is well, and a page for people.
#include <algorithm>
#include <iterator>
#include <utility>

#include "app/agent.h"
#include "format/group_format.h"
#include "pages/assets.h"
#include "pages/range_api.h"

namespace persia::agent {
namespace {

// A scrape takes the newest collection if it is not older.
constexpr std::chrono::milliseconds kScrapeAge{1000};
// A collector that is silent for longer, and for three intervals, is stuck.
constexpr std::chrono::milliseconds kStuckAfter{30'000};

// Everything that the page needs comes from the agent itself.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

ServerResponse ForBrowsers(int status, std::string_view content_type, std::string body) {
  return {.status = status,
          .content_type = std::string(content_type),
          .body = std::move(body),
          .headers = {{"Content-Security-Policy", kPolicy},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-store"}}};
}

std::vector<Route> AssetRoutes() {
  std::vector<Route> routes;
  for (const Asset& asset : Assets()) {
    const bool page = asset.name == "index.html";
    routes.push_back({"GET", page ? "/" : "/assets/" + std::string(asset.name), [&asset](const ServerRequest&) {
                        return ForBrowsers(200, asset.content_type, std::string(asset.content));
                      }});
  }
  return routes;
}

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
  all = WithAgentLabel(all, agent_label_);
  const auto began = std::chrono::steady_clock::now();
  rendered_ = nullptr;
  exposition_ = nullptr;  // so that its memory is used again, if nobody is being sent it
  const std::shared_ptr<std::string> text = spare_exposition_.Take();
  renderer_.Render(*all, *text);
  own_.RenderDone(Seconds(std::chrono::steady_clock::now() - began));
  rendered_ = snapshot;
  exposition_ = text;
  return exposition_;
}

AgentStatus Agent::CurrentStatus() {
  AgentStatus status;
  status.version = setup_.version;
  status.job = setup_.options.job_name;
  status.run_id = setup_.run_id;
  status.directory = setup_.directory;
  status.push_interval = CurrentOptions()->push_interval;
  status.pushes = CurrentOptions()->Pushes();
  status.history = history_.stats();
  const auto now = std::chrono::steady_clock::now();
  for (PushLanes::Lane& lane : lanes_.lanes()) {
    status.gateways.push_back(
        {.address = std::move(lane.name),
         .groups = lane.groups,
         .format = std::string(lane.state.pushes > 0 ? ToString(lane.format) : ""),
         .pushes = lane.state.pushes,
         .pushes_failed = lane.state.failed,
         .last_success = lane.state.last_success,
         .since_success = std::chrono::duration_cast<std::chrono::milliseconds>(now - lane.state.last_success_steady),
         .last_took = std::chrono::duration_cast<std::chrono::microseconds>(lane.state.last_took),
         .last_error = std::move(lane.state.last_error)});
  }
  const std::lock_guard lock(seen_mutex_);
  status.workers = seen_.segments.live;
  status.workers_ended = seen_.segments.dead;
  status.segments_refused = seen_.segments.refused.size();
  status.series = seen_.series;
  status.pids = seen_.pids;
  return status;
}

std::vector<Route> Agent::Routes() {
  const auto metrics = [this](const ServerRequest&) {
    const std::shared_ptr<const std::string> text = Exposition();
    if (text == nullptr) {
      return ServerResponse{.status = 503, .body = "Ending.\n"};
    }
    own_.ScrapeDone();
    return ServerResponse{.content_type = std::string(kTextContentType), .shared_body = text};
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
  const auto reload = [this](const ServerRequest&) { return ReloadByHttp(); };
  std::vector<Route> routes = {
      {"POST", "/-/reload", reload}, {"GET", "/metrics", metrics}, {"GET", "/-/healthy", healthy}, {"GET", "/-/ready", ready}};
  for (std::vector<Route> more : {ApiRoutes(), AssetRoutes()}) {
    std::move(more.begin(), more.end(), std::back_inserter(routes));
  }
  return routes;
}

std::vector<Route> Agent::ApiRoutes() {
  const auto answer = [](JsonAnswer json) { return ForBrowsers(json.status, "application/json", std::move(json.body)); };
  const auto events = [this, answer](const ServerRequest& request) {
    const auto query = EventLog::ParseQuery(request.query);
    return answer(query.ok() ? JsonAnswer{.body = event_log_.Answer(query.value())} : RefuseWith(400, query.error()));
  };
  const auto status = [this, answer](const ServerRequest&) {
    return answer(AnswerStatus(CurrentStatus(), collector_.Newest().get(), std::chrono::system_clock::now()));
  };
  const auto metadata = [this, answer](const ServerRequest&) { return answer(AnswerMetadata(collector_.Newest().get())); };
  const auto series = [this, answer](const ServerRequest& request) {
    return answer(AnswerSeries(request.query, collector_.Newest().get()));
  };
  const auto range = [this, answer](const ServerRequest& request) {
    return answer(AnswerRange(request.query, history_.Entries(), collector_.Newest().get()));
  };
  return {{"GET", "/api/v1/events", events},
          {"GET", "/api/v1/status", status},
          {"GET", "/api/v1/metadata", metadata},
          {"GET", "/api/v1/series", series},
          {"GET", "/api/v1/query_range", range}};
}

}  // namespace persia::agent
