// Numbers the processes of an identity, for gauges that show each of them.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "source/segment_reader.h"

namespace persia::agent {

// 0, 1, ... in each identity. A process keeps its number while it is there; a new one takes the lowest that is free, the oldest
// process first.
class Ordinals {
 public:
  // `identities`: each segment's identity, as a text that stays the same from call to call.
  void Assign(std::span<const SegmentReader* const> segments, std::span<const std::string> identities);
  // REQUIRES: the segment was among the last call's.
  [[nodiscard]] uint32_t Of(const std::string& segment_id) const { return by_id_.at(segment_id).number; }

 private:
  struct Entry {
    std::string identity;
    uint32_t number;
  };
  std::map<std::string, Entry> by_id_;
};

}  // namespace persia::agent
