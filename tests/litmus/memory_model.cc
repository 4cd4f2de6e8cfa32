#include "memory_model.h"

#include <algorithm>
#include <utility>

namespace persia::litmus {

void Knowledge::Join(const Knowledge& other) {
  if (oldest.size() < other.oldest.size()) oldest.resize(other.oldest.size());
  for (size_t i = 0; i < other.oldest.size(); ++i) {
    oldest[i] = std::max(oldest[i], other.oldest[i]);
  }
  for (size_t i = 0; i < epochs.size(); ++i) {
    epochs[i] = std::max(epochs[i], other.epochs[i]);
  }
}

void Knowledge::Saw(uint32_t word, uint32_t store) {
  if (word >= oldest.size()) oldest.resize(word + 1);
  oldest[word] = std::max(oldest[word], store);
}

void Memory::SetSegment(void* base, size_t bytes) {
  base_ = reinterpret_cast<uintptr_t>(base);
  bytes_ = bytes;
  numbers_.assign(bytes / sizeof(uint64_t), kNoWord);
}

uint32_t Memory::WordOf(const volatile void* address, uint64_t initial) {
  const bool in_segment = InSegment(address);
  const size_t offset = reinterpret_cast<uintptr_t>(address) - base_;
  uint32_t& number = in_segment ? numbers_[offset / sizeof(uint64_t)]
                                : others_.try_emplace(reinterpret_cast<uintptr_t>(address), kNoWord).first->second;
  if (number == kNoWord) {
    number = word_count();
    words_.push_back({{Store{.value = in_segment ? 0 : initial}}, in_segment ? offset : SIZE_MAX});
  }
  return number;
}

void Memory::Append(ThreadId by, uint32_t word, Store store) {
  Word& to = words_[word];
  const bool in_segment = to.offset != SIZE_MAX;
  const Store& last = to.stores.back();
  if (in_segment && to.stores.size() > 1 && !(store.update && last.update) &&
      threads_[by].OldestOf(word) + 1 < to.stores.size() && unordered_.empty()) {
    unordered_ = "threads " + std::to_string(last.by) + " and " + std::to_string(by) + " store to the word at " +
                 std::to_string(to.offset) + ", and nothing orders these stores";
  }
  store.by = by;
  store.epoch = epochs_[by];
  store.at = in_segment ? ++now_ : 0;
  threads_[by].Saw(word, static_cast<uint32_t>(to.stores.size()));
  to.stores.push_back(std::move(store));
}

void Memory::NotePlain(ThreadId by, uint32_t word, uint64_t actual) {
  if (words_[word].stores.back().value != actual) Append(by, word, {.value = actual, .plain = true});
}

void Memory::PlainStore(ThreadId by, uint32_t word, uint64_t value) { NotePlain(by, word, value); }

uint64_t Memory::Load(ThreadId by, uint32_t word, uint64_t actual, bool acquire, Pick pick) {
  NotePlain(by, word, actual);
  const std::vector<Store>& stores = words_[word].stores;
  const uint32_t oldest = threads_[by].OldestOf(word);
  const auto count = static_cast<uint32_t>(stores.size()) - oldest;
  const uint32_t chosen = oldest + (count == 1 ? 0 : pick(count));
  threads_[by].Saw(word, chosen);
  if (acquire) Acquire(by, stores[chosen].message);
  return stores[chosen].value;
}

void Memory::StoreTo(ThreadId by, uint32_t word, uint64_t actual, uint64_t value, bool release) {
  NotePlain(by, word, actual);
  Append(by, word, {.value = value});
  if (release) words_[word].stores.back().message = Release(by);
}

void Memory::Update(ThreadId by, uint32_t word, uint64_t actual, uint64_t value, bool acquire, bool release) {
  NotePlain(by, word, actual);
  const MessagePtr before = words_[word].stores.back().message;
  if (acquire) Acquire(by, before);
  Append(by, word, {.value = value, .update = true});
  MessagePtr& message = words_[word].stores.back().message;
  message = before;
  if (!release) return;
  message = Release(by);
  if (before == nullptr) return;
  // An acquire load of it learns what both stores pass on.
  Message both{kMaxThreads, message->knowledge};
  both.knowledge.Join(before->knowledge);
  message = std::make_shared<const Message>(std::move(both));
}

MessagePtr Memory::Release(ThreadId by) {
  Knowledge& own = threads_[by];
  own.epochs[by] = epochs_[by]++;
  return std::make_shared<const Message>(Message{by, own});
}

void Memory::Acquire(ThreadId by, const MessagePtr& message) {
  if (message != nullptr && !message->IsKnownTo(threads_[by])) threads_[by].Join(message->knowledge);
}

}  // namespace persia::litmus
