// Tells of each load that a reader makes from a segment, before it: something else may happen there.
//
//   const SegmentLoads observed([&] { ... });   // in this thread, in the object's life
//
// The linker leads the reader's calls of guarded_copy.h through it (CMakeLists.txt: --wrap). A load of many words is one.
// Thread safety: an object belongs to one thread.
#pragma once

#include <functional>

namespace persia::agent::model {

class SegmentLoads {
 public:
  explicit SegmentLoads(std::function<void()> before);
  ~SegmentLoads();
  SegmentLoads(const SegmentLoads&) = delete;
  SegmentLoads& operator=(const SegmentLoads&) = delete;

 private:
  const std::function<void()> before_;
};

}  // namespace persia::agent::model
