// Zeroed pages of this process, for cells that are in no segment. They are never freed, since a thread may be about to
// write to one. A process takes at most one page for each 512 cells of its metrics, and as many for each thread that records
// before Init.
//
// Not thread-safe.
#pragma once

#include <cstddef>

#include "segment_format.h"

namespace persia::metrics {
inline namespace abi_1 {

class PrivateMemory {
 public:
  // A page; if the system has none, one of the few in static storage. Null: those are used up, too.
  void* NewPage() noexcept;

  // Frees all pages: a forked child has one thread, and starts from zero.
  void ForgetAfterFork() noexcept;

 private:
  static constexpr size_t kPage = segment::kPageBytes;
  static constexpr size_t kBlockPages = 16;
  struct Block;  // the first page of a block, which links it to the former one

  Block* blocks_ = nullptr;
  size_t pages_used_ = kBlockPages;  // of the newest block
  size_t static_pages_used_ = 0;
};

}  // namespace abi_1
}  // namespace persia::metrics
