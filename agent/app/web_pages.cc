#include "app/web_pages.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "format/scrape_format.h"
#include "net/gzip.h"
#include "web/api.h"
#include "web/assets.h"
#include "web/losses.h"
#include "web/machine_json.h"
#include "web/report.h"

namespace persia::agent {
namespace {

// A collector that has reported nothing for longer, and for three intervals, is stuck.
constexpr std::chrono::milliseconds kStuckAfter{30'000};

// Everything that the page needs comes from the agent itself.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

// A smaller body fits into two packets anyway.
constexpr size_t kMinGzipBytes = 2048;
// Of answers, which differ each time. README.md has the measurement.
constexpr int kAnswerLevel = 1;
constexpr int kAssetLevel = 9;

bool TakesGzip(const ServerRequest& request) { return AcceptsGzip(request.HeaderList("Accept-Encoding")); }

ServerResponse ForBrowsers(int status, std::string_view content_type) {
  return {.status = status,
          .content_type = std::string(content_type),
          .headers = {{"Content-Security-Policy", kPolicy},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-store"},
                      {"Vary", "Accept-Encoding"}}};
}

// With a compressed body if the client takes one. Without memory for it, the body is sent as it is.
ServerResponse ForBrowsers(const ServerRequest& request, int status, std::string_view content_type, std::string body) {
  ServerResponse response = ForBrowsers(status, content_type);
  std::string gzipped;
  if (body.size() >= kMinGzipBytes && TakesGzip(request) && GzipCompressor(kAnswerLevel).Compress(body, gzipped).ok()) {
    body = std::move(gzipped);
    response.headers.emplace_back("Content-Encoding", "gzip");
  }
  response.body = std::move(body);
  return response;
}

// An asset's content, which is compressed once.
class GzippedAsset {
 public:
  // Null: there was no memory for it.
  std::shared_ptr<const std::string> Get(std::string_view content) {
    std::call_once(once_, [&] {
      auto gzipped = std::make_shared<std::string>();
      if (GzipCompressor(kAssetLevel).Compress(content, *gzipped).ok()) gzipped_ = std::move(gzipped);
    });
    return gzipped_;
  }

 private:
  std::once_flag once_;
  std::shared_ptr<const std::string> gzipped_;
};

std::vector<Route> AssetRoutes() {
  std::vector<Route> routes;
  for (const Asset& asset : Assets()) {
    const bool page = asset.name == "index.html";
    const auto gzipped = std::make_shared<GzippedAsset>();
    routes.push_back(
        {"GET", page ? "/" : "/assets/" + std::string(asset.name), [&asset, gzipped](const ServerRequest& request) {
           ServerResponse response = ForBrowsers(200, asset.content_type);
           const bool is_small = asset.content.size() < kMinGzipBytes;
           if (!is_small && TakesGzip(request)) response.shared_body = gzipped->Get(asset.content);
           if (response.shared_body != nullptr)
             response.headers.emplace_back("Content-Encoding", "gzip");
           else
             response.body = asset.content;
           return response;
         }});
  }
  return routes;
}

}  // namespace

WebPages::WebPages(const Parts& parts) : parts_(parts), scrape_page_(parts.collector, parts.own, AgentIdentity(parts.setup)) {}

AgentStatus WebPages::Status() const {
  const std::shared_ptr<const AgentOptions> options = parts_.options.Get();
  AgentStatus status;
  status.version = parts_.setup.version;
  status.job = parts_.setup.options.job_name;
  status.run_id = parts_.setup.run_id;
  status.directory = parts_.setup.directory;
  status.attempt = parts_.setup.attempt;
  status.push_interval = options->push_interval;
  status.look_interval = std::min<std::chrono::milliseconds>(options->push_interval, kLookInterval);
  status.history = parts_.history.stats();
  const auto now = std::chrono::steady_clock::now();
  Pusher::State gateway = parts_.pusher.state();
  if (!gateway.gateway.empty()) status.gateway.address = std::move(gateway.gateway);
  status.gateway.groups = gateway.groups;
  status.gateway.format = gateway.pushes > 0 ? ToString(gateway.format) : "";
  status.gateway.pushes = gateway.pushes;
  status.gateway.pushes_failed = gateway.failed;
  status.gateway.last_success = gateway.last_success;
  status.gateway.since_success = std::chrono::duration_cast<std::chrono::milliseconds>(now - gateway.last_success_steady);
  status.gateway.last_took = std::chrono::duration_cast<std::chrono::microseconds>(gateway.last_took);
  status.gateway.last_error = std::move(gateway.last_error);
  Collection::Summary collected = parts_.collection.summary();
  status.workers = collected.segments.live;
  status.workers_ended = collected.segments.dead;
  status.segments_refused = collected.segments.refused.size();
  status.series = collected.series;
  status.processes = std::move(collected.processes);
  status.health = std::move(collected.health);
  const auto history = parts_.history.Entries();
  status.ranks = std::move(collected.ranks);
  status.goodput = std::move(collected.goodput);
  status.not_finite = std::move(collected.not_finite);
  status.losses = Losses();
  status.throughput = ThroughputOf(history);
  status.progress = ProgressOf(history, IsOver(*status.health));
  if (status.ranks->job_stands && !IsOver(*status.health)) StandStill(status.progress, status.throughput);
  status.recent = RecentEntries(history);
  return status;
}

std::vector<HealthReport::Reason> WebPages::Losses() const {
  const std::shared_ptr<const Snapshot> newest = parts_.collector.Newest();
  return newest == nullptr ? std::vector<HealthReport::Reason>() : LossesIn(*newest);
}

std::vector<Route> WebPages::Routes() {
  const auto metrics = [this](const ServerRequest& request) {
    const ScrapeFormat format = AcceptedFormat(request.HeaderList("Accept"));
    ScrapePage::Body body = scrape_page_.BodyIn(format, TakesGzip(request));
    if (body.text == nullptr)
      return ServerResponse{.status = 503, .body = "The agent ends, or slow clients still receive many former answers.\n"};
    parts_.own.ScrapeDone();
    ServerResponse response{.content_type = std::string(ContentType(format)),
                            .headers = {{"Vary", "Accept, Accept-Encoding"}},
                            .shared_body = std::move(body.text)};
    if (body.is_gzip) response.headers.emplace_back("Content-Encoding", "gzip");
    return response;
  };
  const auto healthy = [this](const ServerRequest&) {
    return parts_.collector.AliveWithin(std::max(kStuckAfter, 3 * parts_.options.Get()->push_interval))
               ? ServerResponse{.body = "Healthy.\n"}
               : ServerResponse{.status = 503, .body = "Not healthy: a collection does not finish.\n"};
  };
  const auto ready = [this](const ServerRequest&) {
    return parts_.collector.Newest() != nullptr
               ? ServerResponse{.body = "Ready.\n"}
               : ServerResponse{.status = 503, .body = "Not ready: nothing is collected yet.\n"};
  };
  const auto reload = [this](const ServerRequest&) { return Reload(); };
  const auto report = [this](const ServerRequest& request) {
    return big_answers_.Answer([&] {
      ServerResponse response = ForBrowsers(request, 200, "text/html; charset=utf-8", Report());
      response.headers.emplace_back("Content-Disposition", "attachment; filename=\"report.html\"");
      return response;
    });
  };
  std::vector<Route> routes = {{"POST", "/-/reload", reload},
                               {"GET", "/metrics", metrics},
                               {"GET", "/-/healthy", healthy},
                               {"GET", "/-/ready", ready},
                               {"GET", "/report.html", report}};
  for (std::vector<Route> more : {ApiRoutes(), AssetRoutes()}) std::move(more.begin(), more.end(), std::back_inserter(routes));
  return routes;
}

std::string WebPages::Report() const {
  return MakeReport(Status(), parts_.history.Entries(), parts_.collector.Newest().get(), parts_.event_log,
                    std::chrono::system_clock::now());
}

std::vector<Route> WebPages::ApiRoutes() {
  const auto answer = [](const ServerRequest& request, JsonAnswer json) {
    return ForBrowsers(request, json.status, "application/json", std::move(json.body));
  };
  const auto big = [this, answer](const ServerRequest& request, const auto& make) {
    return big_answers_.Answer([&] { return answer(request, make()); });
  };
  const auto events = [this, answer](const ServerRequest& request) {
    return answer(request, AnswerEvents(request.query, parts_.event_log));
  };
  const auto status = [this, answer](const ServerRequest& request) {
    return answer(request, AnswerStatus(Status(), parts_.collector.Newest().get(), std::chrono::system_clock::now()));
  };
  const auto end = [this](const ServerRequest& request) { return AwaitEnd(request); };
  const auto metadata = [this, big](const ServerRequest& request) {
    return big(
        request, [&] { return AnswerMetadata(parts_.collector.Newest().get()); });
  };
  const auto series = [this, big](const ServerRequest& request) {
    return big(
        request, [&] { return AnswerSeries(request.query, parts_.collector.Newest().get()); });
  };
  const auto search = [this, big](const ServerRequest& request) {
    return big(
        request, [&] { return AnswerSearch(request.query, parts_.collector.Newest().get()); });
  };
  const auto range = [this, big](const ServerRequest& request) {
    return big(request, [&] { return AnswerRange(request.query, parts_.history.Entries(), parts_.collector.Newest().get()); });
  };
  return {{"GET", "/api/v1/events", events},     {"GET", "/api/v1/status", status}, {"GET", "/api/v1/end", end},
          {"GET", "/api/v1/metadata", metadata}, {"GET", "/api/v1/series", series}, {"GET", "/api/v1/search", search},
          {"GET", "/api/v1/query_range", range}};
}

void WebPages::End(std::string kept_page) {
  if (!kept_page.empty()) kept_page_ = std::move(kept_page);
  end_.End();
}

ServerResponse WebPages::AwaitEnd(const ServerRequest& request) {
  switch (end_.Await()) {
    case EndNotice::Outcome::kNotYet:
      return ForBrowsers(204, "application/json");
    case EndNotice::Outcome::kTooMany: {
      ServerResponse refusal = ForBrowsers(503, "text/plain; charset=utf-8");
      refusal.body = "Too many requests wait for the end; ask for the status.\n";
      refusal.headers.emplace_back("Retry-After", "25");
      return refusal;
    }
    case EndNotice::Outcome::kEnded:
      break;
  }
  AgentStatus status = Status();
  status.kept_page = kept_page_;
  JsonAnswer last = AnswerStatus(status, parts_.collector.Newest().get(), std::chrono::system_clock::now());
  return ForBrowsers(request, last.status, "application/json", std::move(last.body));
}

ServerResponse WebPages::Reload() const {
  if (!parts_.setup.options.enable_lifecycle)
    return {.status = 403, .body = "Reloading by HTTP is disabled; set enable_lifecycle: true, and restart the agent.\n"};
  const std::vector<std::string> errors = parts_.setup.reload();
  if (errors.empty()) return {.body = "Reloaded.\n"};
  std::string body = "Not reloaded, the settings in use stay:\n";
  for (const std::string& error : errors) body += error + "\n";
  return {.status = 500, .body = std::move(body)};
}

}  // namespace persia::agent
