// Runs a program of the library, and records what it does with memory.
//
// The library's sources, the reader's copies and the programs are compiled with -fsanitize=thread, but this folder's sources
// take the place of the sanitizer's runtime (instrumentation.cc): the compiler tells of each access with its memory order, and
// the product's code stays as it is. Plain writes to the segment that the compiler does not tell, as memcpy's, are found by
// comparison with a copy of the segment.
//
// One thread of the program runs at a time. Before each atomic operation and each lock, a seeded choice may let another one run
// (threads.h).
// Thread safety: as memory_model.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "memory_model.h"
#include "races.h"

namespace persia::litmus {

// xorshift64*.
class Random {
 public:
  explicit Random(uint64_t seed) : state_((seed + 1) * 0x9E3779B97F4A7C15) {}
  uint32_t Below(uint32_t limit) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>((state_ * 0x2545F4914F6CDD1D) >> 33) % limit;
  }
  bool OneIn(uint32_t n) { return Below(n) == 0; }

 private:
  uint64_t state_;
};

class Recorder {
 public:
  static Recorder& Get();

  // From now on, the calling thread is thread 0, and all is recorded.
  void Begin(uint64_t seed);
  void End();

  // Atomic operations of the calling thread, which the caller performs on memory: `actual` is its content before. `order` is
  // that of the __atomic built-ins. Load returns what the program gets.
  uint64_t Load(const volatile void* address, size_t bytes, uint64_t actual, int order);
  void LoadNewest(const volatile void* address, size_t bytes, uint64_t actual, int order);
  void Store(const volatile void* address, size_t bytes, uint64_t actual, uint64_t value, int order);
  void Update(const volatile void* address, size_t bytes, uint64_t actual, uint64_t value, int order);
  // Before an operation: another thread may run. Finds plain writes to the segment.
  void Before();
  void Plain(const volatile void* address, size_t bytes, bool write);

  // Of system calls (system_calls.cc).
  void SegmentWasMapped(void* base, size_t bytes) { memory_.SetSegment(base, bytes); }
  void SegmentHas(uint64_t offset, uint64_t bytes);
  void SegmentWasNamed();

  [[nodiscard]] Memory& memory() { return memory_; }
  [[nodiscard]] Random& random() { return random_; }
  // How many stores there were, after those that only a comparison finds.
  uint32_t Now();
  // The bytes of the segment's file.
  [[nodiscard]] std::string SegmentImage() const;
  // What an agent knows that opens the file. Null: it has no name.
  [[nodiscard]] const MessagePtr& named() const { return named_; }
  [[nodiscard]] uint32_t named_at() const { return named_at_; }
  // The first thing that is wrong with the library itself; empty: nothing.
  [[nodiscard]] std::string Wrong() const;
  void Claim(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

 private:
  void FindPlainWrites(ThreadId by);
  void NoteLoad(const volatile void* address, size_t bytes);
  // A reader loads whole words of the segment. Of parts, only stores are recorded as those of their word.
  [[nodiscard]] bool IsPart(const volatile void* address, size_t bytes) const {
    return bytes < sizeof(uint64_t) && memory_.InSegment(address);
  }

  Random random_{0};
  Memory memory_;
  Races races_{memory_};
  std::vector<std::pair<uint64_t, uint64_t>> allocated_;  // of the segment: offset and bytes
  std::vector<uint64_t> copy_;                            // of the segment
  MessagePtr named_;
  uint32_t named_at_ = 0;
  std::string wrong_;
};

}  // namespace persia::litmus
