// The summary of a run as lines of text.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "health/run_summary.h"

namespace persia::agent {

// For the log at the end of a run, each on its own; empty if no rank marks phases.
[[nodiscard]] std::vector<std::string> SummaryLines(const RunSummary& summary);

// A table, with its last line end. `name`: of its file.
[[nodiscard]] std::string SummaryTable(const std::string& name, const RunSummary& summary);
// Of two runs, with the differences from the first to the second.
[[nodiscard]] std::string CompareTable(const std::string& name_a, const RunSummary& a, const std::string& name_b,
                                       const RunSummary& b);

// "1 h 02 min", "4 min 05 s", "12.3 s".
[[nodiscard]] std::string DurationText(double seconds);

}  // namespace persia::agent
