// The pages that the agent serves: /metrics, its health, the page and the page's API.
#pragma once

#include <string>
#include <vector>

#include "app/agent_setup.h"
#include "app/collection.h"
#include "app/collector.h"
#include "app/scrape_page.h"
#include "job/event_log.h"
#include "net/http_server.h"
#include "own/own_metrics.h"
#include "push/pusher.h"
#include "web/held_requests.h"
#include "web/history.h"
#include "web/status_api.h"

namespace persia::agent {

// Thread safety: the routes are called by the threads of the web server.
class WebPages {
 public:
  // The sources of the pages; all of them outlive this.
  struct Parts {
    const AgentSetup& setup;
    const LiveOptions& options;
    Collector& collector;
    const Collection& collection;
    const History& history;
    EventLog& event_log;
    Pusher& pusher;
    OwnMetrics& own;
  };

  explicit WebPages(const Parts& parts);

  // They use this object.
  std::vector<Route> Routes();
  // The last collection is over: open pages are told how the job ended, before the server stops. `kept_page`: the file to which
  // the page is written then; empty: it is not kept.
  void End(std::string kept_page = "");
  // REQUIRES: End has returned. The server still answers those pages.
  void AwaitReaders() { end_.AwaitReaders(); }
  // The page with all that it would show now, as one HTML file.
  [[nodiscard]] std::string Report() const;
  // Of the newest collection (web/losses.h).
  [[nodiscard]] std::vector<HealthReport::Reason> Losses() const;

 private:
  AgentStatus Status() const;
  ServerResponse AwaitEnd(const ServerRequest& request);
  std::vector<Route> ApiRoutes();
  ServerResponse Reload() const;

  const Parts parts_;
  ScrapePage scrape_page_;
  BigAnswers big_answers_;
  std::string kept_page_;  // written before end_ has ended, read after
  EndNotice end_;
};

}  // namespace persia::agent
