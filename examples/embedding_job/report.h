// The report of a job: what its processes counted, in one JSON file.
//
//   {"metrics": [...], "own_metrics": [...], "batches": N, "first_loss": a, "last_loss": b, "elapsed_seconds": t}
//
// Each process writes a part; the parts of all are merged. A part tells whether it is whole. Thread safety: none needed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace embedding_job {

// What one process has to say. The metrics are JSON objects, in one line each.
struct ReportPart {
  std::vector<std::string> metrics;      // of the Persia tables
  std::vector<std::string> own_metrics;  // of other groups
  std::string job_fields;                // of the job as a whole, from the one process that knows: "\"batches\":3", or empty
};

// A text with its quotes; a number in the shortest form that reads back to the same one (null for NaN and infinities).
std::string JsonText(std::string_view text);
std::string JsonNumber(double value);

// Throws JobError.
void WriteReportPart(const std::filesystem::path& path, const ReportPart& part);
// Throws JobError if the part is missing, or its writer ended before it was whole.
ReportPart ReadReportPart(const std::filesystem::path& path);

// Writes the report of all parts. Throws JobError.
void WriteReport(const std::filesystem::path& path, const std::vector<ReportPart>& parts);

}  // namespace embedding_job
