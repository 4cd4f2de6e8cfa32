#include "web/kept_reports.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.h"

namespace persia::agent {
namespace {

constexpr std::string_view kEnd = ".html";
constexpr mode_t kMode = 0700;

std::string PartOfName(std::string_view text) {
  constexpr size_t kMost = 100;
  std::string part(text.substr(0, kMost));
  std::ranges::replace_if(
      part,
      [](char c) {
        const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        return !is_word && c != '.' && c != '-' && c != '_';
      },
      '_');
  return part;
}

}  // namespace

std::string KeptReportsDirectory(std::string_view home, std::string_view state_home) {
  if (state_home.starts_with('/')) return std::string(state_home) + "/persia-metrics";
  return home.starts_with('/') ? std::string(home) + "/.local/state/persia-metrics" : "";
}

std::string KeptReportName(std::string_view job, std::string_view host, std::chrono::system_clock::time_point now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char time[32];
  std::strftime(time, sizeof time, "-%Y%m%d-%H%M%S-", &utc);
  return PartOfName(job) + time + PartOfName(host) + std::string(kEnd);
}

Status MakeKeptReportsDirectory(const std::string& directory) {
  for (size_t at = directory.find('/', 1); at != std::string::npos; at = directory.find('/', at + 1))
    if (mkdir(directory.substr(0, at).c_str(), kMode) != 0 && errno != EEXIST) break;
  if (mkdir(directory.c_str(), kMode) == 0 || errno == EEXIST) return Done{};
  return SystemError("cannot create " + Quoted(directory));
}

void RemoveOldReports(const std::string& directory) {
  std::error_code error;
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> reports;
  for (auto at = std::filesystem::directory_iterator(directory, error); !error && at != std::filesystem::directory_iterator();
       at.increment(error)) {
    std::error_code gone;
    if (!at->path().string().ends_with(kEnd) || !at->is_regular_file(gone)) continue;
    if (const auto written = at->last_write_time(gone); !gone) reports.emplace_back(written, at->path());
  }
  std::ranges::sort(reports, std::greater());
  for (size_t i = kKeptReports; i < reports.size(); ++i) std::filesystem::remove(reports[i].second, error);
}

}  // namespace persia::agent
