#include "reader_memory.h"

#include <vector>

namespace persia::litmus {

ReaderMemory* ReaderMemory::active = nullptr;

ReaderMemory::ReaderMemory(const Memory& memory, const char* at, Choices& choices, uint32_t end)
    : memory_(memory),
      begin_(reinterpret_cast<uintptr_t>(at)),
      choices_(choices),
      end_(end),
      until_move_(choices.LoadsUntilMove()) {
  active = this;
}

ReaderMemory::~ReaderMemory() { active = nullptr; }

ReaderMemory* ReaderMemory::Of(const volatile void* address) {
  const bool is_its = active != nullptr && reinterpret_cast<uintptr_t>(address) - active->begin_ < active->memory_.bytes();
  return is_its ? active : nullptr;
}

uint64_t ReaderMemory::Load(const volatile void* address, int order) {
  ++loads_;
  if (--until_move_ == 0) {
    Move();
    until_move_ = choices_.LoadsUntilMove();
  }
  const size_t offset = reinterpret_cast<uintptr_t>(address) - begin_;
  const uint32_t word = memory_.SegmentWord(offset);
  if (word == kNoWord) return 0;
  const std::vector<Store>& stores = memory_.history(word);
  const uint32_t oldest = knowledge_.OldestOf(word);
  auto newest = static_cast<uint32_t>(stores.size() - 1);
  while (newest > oldest && stores[newest].at > position_) {
    --newest;
  }
  uint32_t chosen = newest;
  if (newest > oldest) {
    if (stores[oldest + 1].plain && wrong_.empty()) {
      wrong_ = "the reader loads the word at " + std::to_string(offset) + ", which is not published";
    }
    chosen = oldest + choices_.OfStores(newest - oldest + 1);
    knowledge_.Saw(word, chosen);
  }
  const Store& store = stores[chosen];
  if (order == __ATOMIC_ACQUIRE && store.message != nullptr) Learn(*store.message);
  return store.value;
}

void ReaderMemory::LearnAllUpTo(uint32_t position) {
  for (uint32_t word = 0; word < memory_.word_count(); ++word) {
    const std::vector<Store>& stores = memory_.history(word);
    uint32_t last = 0;
    for (uint32_t i = knowledge_.OldestOf(word) + 1; i < stores.size() && stores[i].at <= position; ++i) {
      last = i;
    }
    if (last > 0) knowledge_.Saw(word, last);
  }
}

}  // namespace persia::litmus
