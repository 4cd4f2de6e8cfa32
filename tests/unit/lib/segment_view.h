// Reads a segment by its format, independently of the agent's reader, for the library's tests.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "segment_format.h"

namespace persia::metrics::tests {

struct SeriesView {
  int kind = 0;
  int gauge_policy = 0;
  std::string help;
  std::string unit;
  std::vector<double> bounds;
  uint64_t whole = 0;   // counter: increments; event: count
  double fraction = 0;  // counter: fractional increments; histogram and event: sum; stream: that of positive values
  double negative = 0;  // stream: the sum of negative values
  bool removed = false;
  bool set = false;               // gauge, stream
  double value = 0;               // gauge, stream: the last one
  uint64_t last_ms = 0;           // event
  std::vector<uint64_t> buckets;  // of a stream the counts of negative values and of zeros come first

  [[nodiscard]] uint64_t Count() const;
};

struct EventView {
  std::string type;
  std::string name;
  uint64_t unix_ms = 0;
  uint32_t left_out = 0;
  std::string metadata;  // `key=value;` in order, values by kind
};

struct SegmentView {
  std::string job, run_id, role;
  std::string language, library_version;
  int replica = 0;
  unsigned restart_count = 0;
  bool forked = false;
  std::map<std::string, std::string> labels;
  uint32_t pid = 0;
  std::map<std::string, SeriesView> series;  // by `group/name{label="value",...}`
  std::vector<uint64_t> dropped;
  uint64_t events_recorded = 0;
  std::vector<EventView> events;  // whole records, oldest first
  uint64_t removals = 0;          // how often a series was removed or exposed again
  uint64_t chunks = 0;
  uint64_t lanes = 0;  // the highest number of one

  [[nodiscard]] uint64_t DroppedFor(segment::Drop why) const { return dropped.at(static_cast<size_t>(why)); }
};

// Throws std::runtime_error where the file does not keep to the format.
SegmentView ReadSegment(const std::string& path);

// Whether the writer's process lives: it holds the file's lock.
bool IsLocked(const std::string& path);

// The paths of the segments in a directory, sorted.
std::vector<std::string> SegmentsIn(const std::string& directory);

}  // namespace persia::metrics::tests
