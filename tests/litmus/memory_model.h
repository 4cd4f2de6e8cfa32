// The memory model of C++'s atomics, by execution: which stores a load may return.
//
// Invariants:
//   1. A word has the history of its stores in modification order, which is the order of their execution.
//   2. A thread knows, for each word, the oldest store that it may still load: none before its own last load or store of it,
//      and none before a store that happened before.
//   3. A release store carries what its thread knows. An acquire load that returns it, or a read-modify-write that follows it
//      directly, learns that. So do a lock and a join, from an unlock and an end.
//   4. A relaxed load learns nothing but invariant 2.
// Sequentially consistent operations count as acquire and release. Fences are not modelled; the library has none.
//
// The order of execution is the only modification order that is tried. So stores whose order nothing decides are an error of
// their own (UnorderedStores): another execution may have the other order. Thread safety: none; one thread runs at a time
// (threads.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace persia::litmus {

// 0 is the thread that runs main.
using ThreadId = uint32_t;
inline constexpr ThreadId kMaxThreads = 6;

struct Knowledge {
  std::vector<uint32_t> oldest;                   // by word: index in its history
  std::array<uint32_t, kMaxThreads> epochs = {};  // by thread: all of its accesses up to this one happened before

  void Join(const Knowledge& other);
  [[nodiscard]] uint32_t OldestOf(uint32_t word) const { return word < oldest.size() ? oldest[word] : 0; }
  void Saw(uint32_t word, uint32_t store);
};

// What a release store passes on. Null: nothing.
struct Message {
  ThreadId from = 0;  // kMaxThreads: several
  Knowledge knowledge;

  // Whether a thread that knows this would learn nothing.
  [[nodiscard]] bool IsKnownTo(const Knowledge& own) const {
    return from < kMaxThreads && own.epochs[from] >= knowledge.epochs[from];
  }
};
using MessagePtr = std::shared_ptr<const Message>;

struct Store {
  uint64_t value = 0;
  uint32_t at = 0;  // its number among all stores to words of the segment
  ThreadId by = 0;
  uint32_t epoch = 0;   // of its thread
  bool plain = false;   // not atomic
  bool update = false;  // a read-modify-write
  MessagePtr message = nullptr;
};

inline constexpr uint32_t kNoWord = UINT32_MAX;

class Memory {
 public:
  // Decides which of `count` stores a load returns: 0 is the oldest that it may.
  using Pick = uint32_t (*)(uint32_t count);

  // The words of the segment are numbered; others are found by their address. `initial` is the value before the first store.
  uint32_t WordOf(const volatile void* address, uint64_t initial);
  [[nodiscard]] bool HasSegment() const { return bytes_ > 0; }
  // The segment's memory, of zeros.
  void SetSegment(void* base, size_t bytes);
  [[nodiscard]] bool InSegment(const volatile void* address) const {
    return reinterpret_cast<uintptr_t>(address) - base_ < bytes_;
  }
  [[nodiscard]] std::byte* base() const { return reinterpret_cast<std::byte*>(base_); }
  [[nodiscard]] size_t bytes() const { return bytes_; }
  // kNoWord: it was never stored to.
  [[nodiscard]] uint32_t SegmentWord(size_t offset) const { return numbers_[offset / sizeof(uint64_t)]; }

  // `actual` is the memory's contents: if they are not the last store's, they were stored by a plain write.
  uint64_t Load(ThreadId by, uint32_t word, uint64_t actual, bool acquire, Pick pick);
  void StoreTo(ThreadId by, uint32_t word, uint64_t actual, uint64_t value, bool release);
  void Update(ThreadId by, uint32_t word, uint64_t actual, uint64_t value, bool acquire, bool release);
  void PlainStore(ThreadId by, uint32_t word, uint64_t value);

  // For locks, and the begin and end of threads.
  MessagePtr Release(ThreadId by);
  void Acquire(ThreadId by, const MessagePtr& message);
  // Whether an access by `other` in this epoch happened before what `by` does now.
  [[nodiscard]] bool HappenedBefore(ThreadId other, uint32_t epoch, ThreadId by) const {
    return other == by || threads_[by].epochs[other] >= epoch;
  }
  [[nodiscard]] uint32_t EpochOf(ThreadId thread) const { return epochs_[thread]; }

  [[nodiscard]] const std::vector<Store>& history(uint32_t word) const { return words_[word].stores; }
  [[nodiscard]] uint32_t word_count() const { return static_cast<uint32_t>(words_.size()); }
  // How many stores there were to the segment.
  [[nodiscard]] uint32_t now() const { return now_; }
  // Two stores to a word of the segment whose order nothing decides; empty: there are none.
  [[nodiscard]] const std::string& unordered() const { return unordered_; }

 private:
  struct Word {
    std::vector<Store> stores;
    size_t offset = SIZE_MAX;  // in the segment
  };

  void NotePlain(ThreadId by, uint32_t word, uint64_t actual);
  void Append(ThreadId by, uint32_t word, Store store);

  uintptr_t base_ = 0;
  size_t bytes_ = 0;
  std::vector<uint32_t> numbers_;  // by offset / 8 in the segment
  std::unordered_map<uintptr_t, uint32_t> others_;
  std::vector<Word> words_;
  std::array<Knowledge, kMaxThreads> threads_;
  std::array<uint32_t, kMaxThreads> epochs_ = {1, 1, 1, 1, 1, 1};
  uint32_t now_ = 0;
  std::string unordered_;
};

}  // namespace persia::litmus
