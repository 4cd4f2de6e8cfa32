#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "files/small_file.h"
#include "health/run_summary.h"
#include "health/summary_text.h"

namespace persia::agent {
namespace {

// A summary of 10,000 ranks has 5 MiB, and the stacks and last lines of its deaths (death_memory.h) at most some more.
constexpr size_t kMaxMib = 256;

// None, after a line on stderr, if it cannot be read.
std::optional<RunSummary> ReadSummary(const std::string& path) {
  std::string problem;
  if (const auto file = ReadSmallFile(path, "; expected the JSON that an agent wrote with --report", kMaxMib); !file.ok())
    problem = file.error();
  else if (auto summary = ParseSummary(file.value().content); !summary.ok())
    problem = summary.error();
  else
    return std::move(summary).value();
  std::fprintf(stderr, "persia-metrics-agent: %s %s\n", Quoted(path).c_str(), problem.c_str());
  return std::nullopt;
}

}  // namespace

int ReportCommand(const ReportArguments& arguments) {
  std::vector<RunSummary> summaries;
  for (const std::string& file : arguments.files) {
    auto summary = ReadSummary(file);
    if (!summary) return kExitFailed;
    summaries.push_back(*std::move(summary));
  }
  const std::vector<std::string>& files = arguments.files;
  const std::string text =
      arguments.compares ? CompareTable(files[0], summaries[0], files[1], summaries[1]) : SummaryTable(files[0], summaries[0]);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? kExitDone : kExitFailed;
}

}  // namespace persia::agent
