// The segment's memory as a reader sees it: each load returns one of the stores that the memory model allows.
//
// The reader stores nothing, so the program does not depend on it: the program is recorded first, and read afterwards, in many
// ways. A load of a plain word that may return more than one store is an error in itself: the reader uses what is not
// published. Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "choices.h"
#include "memory_model.h"

namespace persia::litmus {

class ReaderMemory {
 public:
  // Answers loads from `at` on. The writer ends at the store with number `end`. All three outlive it.
  ReaderMemory(const Memory& memory, const char* at, Choices& choices, uint32_t end);
  ~ReaderMemory();
  ReaderMemory(const ReaderMemory&) = delete;
  ReaderMemory& operator=(const ReaderMemory&) = delete;

  // The one that answers for this address; null: none.
  static ReaderMemory* Of(const volatile void* address);
  uint64_t Load(const volatile void* address, int order);

  void Learn(const Message& message) {
    if (!message.IsKnownTo(knowledge_)) knowledge_.Join(message.knowledge);
  }
  // All stores up to this one have reached the reader.
  void LearnAllUpTo(uint32_t position);
  // The writer gets at least to this store.
  void MoveTo(uint32_t position) { position_ = std::max(position_, position); }
  // The writer may go on.
  void Move() { position_ = choices_.OfPosition(position_, end_); }
  [[nodiscard]] uint32_t position() const { return position_; }
  [[nodiscard]] uint64_t loads() const { return loads_; }
  // Empty: nothing.
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  static ReaderMemory* active;

  const Memory& memory_;
  const uintptr_t begin_;
  Choices& choices_;
  const uint32_t end_;
  Knowledge knowledge_;
  uint32_t position_ = 0;
  uint32_t until_move_;
  uint64_t loads_ = 0;
  std::string wrong_;
};

}  // namespace persia::litmus
