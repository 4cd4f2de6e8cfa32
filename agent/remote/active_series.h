// The active series of a target: sent, and without a stale marker yet. A file keeps them, so that the next agent can write the
// stale markers of series that end while no agent runs.
//
// A series is in the file before its first sample is in the queue, and until its stale marker is: after a kill, the file may
// list too many series, never too few. Thread safety: none.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/foreign_memory.h"
#include "base/result.h"
#include "files/journal_file.h"
#include "remote/series_plan.h"

namespace persia::agent {

class ActiveSeries {
 public:
  explicit ActiveSeries(DiskJournalFile::Options file) : file_(std::move(file)) {}

  // Returns the series of the former agent. If the file cannot be read now, the result is empty, and loaded() stays false: call
  // it again.
  SeriesTable Load();
  [[nodiscard]] bool loaded() const { return loaded_; }
  // Returns when the file is on disk, or logs, once, that it cannot be written. It is not written before the former agent's is
  // read.
  void Save(const std::vector<std::string_view>& labels);
  // Whether the last Save failed.
  [[nodiscard]] bool unsaved() const { return unsaved_; }

 private:
  Result<SeriesTable> Read();

  DiskJournalFile file_;
  ForeignShare memory_;  // of what was read from the file
  bool loaded_ = false;
  bool unsaved_ = false;
  bool is_load_reported_ = false;
  bool is_save_reported_ = false;
};

}  // namespace persia::agent
