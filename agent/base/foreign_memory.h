// Bounds the memory that bytes of others take: of files that another process may have written.
//
//   ForeignShare share;
//   Result<State> state = share.Charge(path, [&] { return Parse(ReadFile(path)); });
//
// A share has what Charge's call allocates, less what it frees, until the share is destroyed: keep it as long as the result.
// All shares together stay below the limit, so no parser needs a limit of its own. Thread safety: a share is used by one thread
// at a time; static functions by any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

#include "base/result.h"

namespace persia::agent {

class ForeignShare {
 public:
  static constexpr uint64_t kDefaultLimit = 256ULL << 20;

  // Each byte counts `weight` times: for a result of which others keep copies.
  explicit ForeignShare(int64_t weight = 1) : weight_(weight) {}
  ~ForeignShare();
  ForeignShare(const ForeignShare&) = delete;
  ForeignShare& operator=(const ForeignShare&) = delete;

  // Of all shares of this process.
  static void SetLimit(uint64_t bytes);
  [[nodiscard]] static uint64_t Limit();

  // Returns the Result of `read`, in which an allocation beyond the limit throws std::bad_alloc. Then, or if there is no
  // memory, it is an error that begins with `what`, such as a path: discard what `read` has changed, which is in any state.
  // REQUIRES: `read` does not call it.
  template <class Read>
  auto Charge(std::string_view what, const Read& read) -> decltype(read()) {
    const int64_t before = bytes_;
    const Counting counting(this);
    try {
      return read();
    } catch (const std::bad_alloc&) {
      return Refuse(what, before);
    }
  }

  // From now on it has this many bytes, of memory that Charge's call does not see. REQUIRES: Charge is not called.
  void Set(uint64_t bytes);

  // What operator new and delete of foreign_heap.cc allocate, or free: then negative. False: it is beyond the limit.
  static bool Count(int64_t bytes) noexcept;

 private:
  // While it exists, the allocations of its thread count.
  struct Counting {
    explicit Counting(ForeignShare* share);
    ~Counting();
  };
  Error Refuse(std::string_view what, int64_t before);

  const int64_t weight_;
  int64_t bytes_ = 0;  // negative: its calls have freed more than they have allocated
};

// Keeps glibc's heap and stacks small.

// Call first in main. By default glibc gives the threads up to eight heaps per processor, and keeps freed blocks of up to 32
// MiB: a few scrapes of 100,000 series, with texts of 12 MB, then leave 600 MiB resident instead of 60.
// By default a thread's stack is 8 MiB, which a limit on memory counts in full (`ulimit -v`, `ulimit -d`).
void SetUpHeap();

// Returns free pages to the kernel: about a millisecond per 100 MiB. Call it after a change of layout, whose construction takes
// more memory than its result.
void ReturnFreeMemory();

}  // namespace persia::agent
