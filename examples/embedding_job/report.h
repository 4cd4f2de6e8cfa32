// The report of a job: its processes' own counts, in one JSON file.
//
//   {"metrics": [...], "own_metrics": [...], "batches": N, "first_loss": a, "last_loss": b, "elapsed_seconds": t}
//
// Each process writes a part, with an end mark, and one process merges them. Thread safety: functions without state.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace embedding_job {

// One process's part. The metrics are JSON objects, one per line.
struct ReportPart {
  std::vector<std::string> metrics;      // of the Persia tables
  std::vector<std::string> own_metrics;  // of other groups
  std::string job_fields;                // of the whole job, from one process: "\"batches\":3", or empty
};

// A text with its quotes; a number in the shortest form that reads back to the same one (null for NaN and infinities).
std::string JsonText(std::string_view text);
std::string JsonNumber(double value);

// Throws JobError.
void WriteReportPart(const std::filesystem::path& path, const ReportPart& part);
// Throws JobError if the part is missing or incomplete.
ReportPart ReadReportPart(const std::filesystem::path& path);

// Merges the parts into a report and writes it. Throws JobError.
void WriteReport(const std::filesystem::path& path, const std::vector<ReportPart>& parts);

}  // namespace embedding_job
