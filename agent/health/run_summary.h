// The summary of a run: where the time of its ranks has gone, and why processes died.
//
//   const RunSummary summary{.job = "dlrm", .exit_code = 0, .seconds = 3600, .goodput = InSeconds(*goodput.report())};
//   WriteJson(SummaryJson(summary));                        // of a file that other programs read
//   Result<RunSummary> read = ParseSummary(text);           // of any agent's file
//
// docs/goodput.md describes the file. Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "health/goodput.h"

namespace persia::agent {

struct RunSummary {
  static constexpr std::string_view kFormat = "persia-metrics-run";
  // Rises when a reader of the former version would read wrong values. New members may appear without that.
  static constexpr int kVersion = 1;

  std::string job = {};
  std::string run_id = {};
  std::optional<int> attempt = {};  // of the run, from 1 on
  std::string agent_version = {};
  std::optional<int> exit_code = {};  // of exec's command
  double seconds = 0;                 // that the command ran, or the agent
  GoodputInSeconds goodput = {};
  // As in GET /api/v1/status (web/API.md); read from a file, members of any kind.
  Json deaths = Json::array();
  // The rank that was the straggler for longest, of the last agent of the run: an object; null: none was.
  Json slowest = {};

  friend bool operator==(const RunSummary&, const RunSummary&) = default;
};

[[nodiscard]] GoodputInSeconds InSeconds(const GoodputReport& report);

// An object; a caller may add members.
[[nodiscard]] Json SummaryJson(const RunSummary& summary);
// Members that it does not know are ignored. The error is meant to follow the file's name.
[[nodiscard]] Result<RunSummary> ParseSummary(std::string_view text);

}  // namespace persia::agent
