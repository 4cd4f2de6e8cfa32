// A part:
//
//   line   kind ' ' json '\n'        kind: "metric", "own" or "job"
//   end    "end\n"
#include "report.h"

#include <charconv>
#include <cmath>
#include <fstream>

#include "job_error.h"

namespace embedding_job {
namespace {

constexpr std::string_view kMetric = "metric ";
constexpr std::string_view kOwn = "own ";
constexpr std::string_view kJob = "job ";
constexpr std::string_view kEnd = "end";

void WriteFile(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  if (!file)
    throw JobError("cannot write the report \"" + path.string() + "\": does its folder exist, and may you write there?");
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "\n" : ",\n") + line;
  return text;
}

}  // namespace

std::string JsonText(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr char kDigits[] = "0123456789abcdef";
      json += std::string("\\u00") + kDigits[(c >> 4) & 15] + kDigits[c & 15];
    } else {
      json += c;
    }
  }
  return json + "\"";
}

std::string JsonNumber(double value) {
  if (!std::isfinite(value)) return "null";
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};
}

void WriteReportPart(const std::filesystem::path& path, const ReportPart& part) {
  std::string text;
  const auto add = [&](std::string_view kind, std::string_view json) { text.append(kind).append(json).append("\n"); };
  for (const std::string& metric : part.metrics) add(kMetric, metric);
  for (const std::string& metric : part.own_metrics) add(kOwn, metric);
  if (!part.job_fields.empty()) add(kJob, part.job_fields);
  add(kEnd, "");
  WriteFile(path, text);
}

ReportPart ReadReportPart(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  ReportPart part;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kMetric))
      part.metrics.push_back(line.substr(kMetric.size()));
    else if (line.starts_with(kOwn))
      part.own_metrics.push_back(line.substr(kOwn.size()));
    else if (line.starts_with(kJob))
      part.job_fields = line.substr(kJob.size());
    else if (line == kEnd)
      return part;
    else
      throw JobError("the part of a report \"" + path.string() + "\" has an unknown line: \"" + line + "\"");
  throw JobError("the part of a report \"" + path.string() + "\" is missing or incomplete: its process ended too early");
}

void WriteReport(const std::filesystem::path& path, const std::vector<ReportPart>& parts) {
  ReportPart all;
  for (const ReportPart& part : parts) {
    all.metrics.insert(all.metrics.end(), part.metrics.begin(), part.metrics.end());
    all.own_metrics.insert(all.own_metrics.end(), part.own_metrics.begin(), part.own_metrics.end());
    all.job_fields += part.job_fields;
  }
  WriteFile(path, "{\"metrics\":[" + Joined(all.metrics) + "],\n\"own_metrics\":[" + Joined(all.own_metrics) + "]" +
                      (all.job_fields.empty() ? "" : ",\n" + all.job_fields) + "}\n");
}

}  // namespace embedding_job
