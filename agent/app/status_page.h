// The page at `/`: what this agent does, and where to look further.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace persia::agent {

struct StatusPage {
  std::string version;
  std::string job;
  std::string run_id;
  std::string directory;
  std::string gateway;
  double push_interval_seconds = 0;
  uint64_t pushes = 0;
  uint64_t pushes_failed = 0;
  std::optional<std::chrono::system_clock::time_point> last_success;
  std::chrono::seconds since_success{0};  // not the difference to the wall clock, which may be set meanwhile
  std::string last_error;                 // empty: the last push went well
  size_t workers = 0;
  size_t workers_ended = 0;
  size_t segments_refused = 0;
  size_t series = 0;
};

// Self-contained HTML; whatever stands in the fields is shown as text.
std::string RenderStatusPage(const StatusPage& page);

}  // namespace persia::agent
