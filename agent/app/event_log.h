// What becomes of the job's event records: the newest are kept for GET /api/v1/events, and all go into a file, if one is
// wanted.
//
// The file has a JSON object a line; when it would grow beyond its limit it is renamed to `<file>.1`, in place of the one
// before. A line is written whole. Where it cannot be written that is said once, and the next event tries again; the job's
// counts of its events are elsewhere. Thread safety: any method, any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "model/job_event.h"
#include "model/result.h"

namespace persia::agent {

// {"timestamp": ..., "type": ..., "name": ..., "metadata": {...}, "instance": ..., "role": ..., "pid": ...}, without line ends.
// Numbers that are not finite are strings: "NaN", "Infinity", "-Infinity".
std::string EventJson(const JobEvent& event);

class EventLog {
 public:
  struct Options {
    // "-": stdout; empty: no file.
    std::string file = {};
    uint64_t max_file_bytes = 64 << 20;
    size_t kept = 1000;
    // Called with what there is to log.
    std::function<void(const std::string& message)> warn = {};
  };
  // What is asked of the newest events.
  struct Query {
    uint64_t since_ms = 0;  // only later ones
    std::string type = {};  // only of this type; empty: of all
    size_t limit = 100;     // the newest of them
  };

  explicit EventLog(Options options) : options_(std::move(options)) {}
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void Add(std::span<const JobEvent> events);
  // A JSON object: {"events": [...]}, the oldest first.
  [[nodiscard]] std::string Answer(const Query& query);
  // From the query of a URL; an error says what is wrong with it.
  static Result<Query> ParseQuery(std::string_view query);

 private:
  Status Write(const std::string& line);
  Status OpenFile();

  const Options options_;
  std::mutex mutex_;
  std::deque<JobEvent> newest_;
  int fd_ = -1;
  bool regular_ = false;
  uint64_t file_bytes_ = 0;
  bool complained_ = false;
};

}  // namespace persia::agent
