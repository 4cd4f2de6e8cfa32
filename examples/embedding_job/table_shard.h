// Rows by id. If the shard is full, it evicts the least recently looked up row.
//
// A hash table with open addressing maps an id to a slot. The slots form a list, the most recently looked up first. Thread
// safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace embedding_job {

class TableShard {
 public:
  static constexpr uint32_t kNoSlot = 0xffffffff;

  // REQUIRES: 0 < capacity < 2^31.
  TableShard(uint32_t row_floats, uint32_t capacity);

  // The slot of an id, or kNoSlot.
  [[nodiscard]] uint32_t Find(uint64_t id) const;
  // Makes the slot the most recently used one.
  void Touch(uint32_t slot);
  // Adds an id that is not here, as the most recently used one, in place of the least recently used one if the shard is full.
  // The row has zeros or old values: fill it.
  uint32_t Insert(uint64_t id);

  [[nodiscard]] float* row(uint32_t slot) { return rows_.data() + size_t{slot} * row_floats_; }
  [[nodiscard]] uint64_t id(uint32_t slot) const { return nodes_[slot].id; }
  // Slots are numbered from 0 without a gap.
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  [[nodiscard]] uint64_t evictions() const { return evictions_; }

 private:
  struct Node {
    uint64_t id;
    uint32_t newer;
    uint32_t older;
  };

  [[nodiscard]] size_t Home(uint64_t id) const;
  void Place(uint64_t id, uint32_t slot);
  void Remove(uint64_t id);
  void Grow();
  void Unlink(uint32_t slot);
  void LinkAsNewest(uint32_t slot);

  const uint32_t row_floats_;
  const uint32_t capacity_;
  std::vector<uint32_t> buckets_;  // slots, kNoSlot where empty; a power of two of them, at most half of them used
  std::vector<Node> nodes_;        // by slot
  std::vector<float> rows_;        // by slot
  uint32_t newest_ = kNoSlot;
  uint32_t oldest_ = kNoSlot;
  uint64_t evictions_ = 0;
};

}  // namespace embedding_job
