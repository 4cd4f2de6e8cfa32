// Keeps the pages of the last runs as files.
//
//   const std::string directory = KeptReportsDirectory(home, state_home);
//   const Status made = MakeKeptReportsDirectory(directory);
//   ... write directory + "/" + KeptReportName("dlrm", "node7", now)
//   RemoveOldReports(directory);
//
// Thread safety: functions of their arguments and of the files.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace persia::agent {

inline constexpr size_t kKeptReports = 20;

// $XDG_STATE_HOME/persia-metrics, else $HOME/.local/state/persia-metrics. Empty: neither value is an absolute path.
[[nodiscard]] std::string KeptReportsDirectory(std::string_view home, std::string_view state_home);
// "dlrm-20261129-134501-node7.html", by UTC: hosts may share the directory, and end together. Other characters than letters,
// digits, dots and dashes are replaced.
[[nodiscard]] std::string KeptReportName(std::string_view job, std::string_view host,
                                         std::chrono::system_clock::time_point now);
// Makes the directory and those above it, for the user alone.
Status MakeKeptReportsDirectory(const std::string& directory);
// Leaves the newest kKeptReports files that end in .html. What cannot be removed stays.
void RemoveOldReports(const std::string& directory);

}  // namespace persia::agent
