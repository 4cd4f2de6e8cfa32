// The job's event records, and up to where each process's were read.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "files/journal_writer.h"
#include "job/job_session.h"
#include "model/events.h"

namespace persia::agent {

// The job's event records: the newest are kept in memory, and all are appended to a file if one is configured.
//
// The file has one JSON object per line. Before it would exceed its limit it is renamed to `<file>.1`, which replaces the
// previous one. If the file has been renamed, deleted or replaced, as logrotate does, the next event goes to the file of that
// name, a new one if there is none. A line is written whole. If writing fails, the log warns once and tries again with the next
// event. A line that a full disk or a power cut has left incomplete is ended, so that it damages no other line. A power cut may
// lose the last lines. Thread safety: any method, any thread.

// {"timestamp": ..., "type": ..., "name": ..., "metadata": {...}, "instance": ..., "role": ..., "pid": ...}, without line ends.
// Numbers that are not finite are strings: "NaN", "Infinity", "-Infinity".
std::string EventJson(const JobEvent& event);

class EventLog {
 public:
  struct Options {
    // "-": stdout; empty: no file.
    std::string file = {};
    uint64_t max_file_bytes = 64 << 20;
    // How many events are kept in memory.
    size_t max_kept = 1000;
    // Called with a message for the log.
    std::function<void(const std::string& message)> warn = {};
  };
  struct Filter {
    uint64_t since_ms = 0;  // only events after this time
    std::string type = {};  // only events of this type; empty: of all types
    size_t limit = 100;     // at most this many, the newest
  };

  explicit EventLog(Options options) : options_(std::move(options)) {}
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void Add(std::span<const JobEvent> events);
  // Of the events in memory, the oldest first.
  [[nodiscard]] std::vector<JobEvent> Newest(const Filter& filter) const;

 private:
  Status Write(const std::string& line) PERSIA_REQUIRES(mutex_);
  Status OpenFile() PERSIA_REQUIRES(mutex_);
  // Closes the file if its name stands for another one now, and renames it if `next_bytes` do not fit.
  Status LeaveOldFile(size_t next_bytes) PERSIA_REQUIRES(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  std::deque<JobEvent> newest_ PERSIA_GUARDED_BY(mutex_);
  int fd_ PERSIA_GUARDED_BY(mutex_) = -1;
  bool is_regular_file_ PERSIA_GUARDED_BY(mutex_) = false;
  bool is_within_line_ PERSIA_GUARDED_BY(mutex_) = false;  // the file ends with a part of a line
  bool write_failed_ PERSIA_GUARDED_BY(mutex_) = false;
};

// The state file with the position up to which each process's events were read, so that a restarted agent does not write them
// again.
//
// The positions are saved after the events were written: an agent that is killed in between writes some events twice, but loses
// none. Thread safety: none.
class EventPositionFile {
 public:
  // The number of the next record, by the segment's id.
  using Positions = std::map<std::string, uint64_t>;

  explicit EventPositionFile(const StateLocation& location);

  // Empty if there is no file, or if it cannot be read.
  Positions Load();
  // Passes the positions to a thread that writes the file, if one changed.
  void Save(const Positions& positions);
  // Waits until the positions that were passed are written.
  void Flush(std::chrono::milliseconds patience) { writer_.AwaitWritten(writer_.last(), patience); }

 private:
  const std::shared_ptr<JournalFile> file_;
  JournalWriter writer_;
  Positions passed_;
};

}  // namespace persia::agent
