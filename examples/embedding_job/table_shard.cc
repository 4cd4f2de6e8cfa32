#include "table_shard.h"

#include "hashing.h"

namespace embedding_job {
namespace {

constexpr size_t kFirstBuckets = 16;

}  // namespace

TableShard::TableShard(uint32_t row_floats, uint32_t capacity)
    : row_floats_(row_floats), capacity_(capacity), buckets_(kFirstBuckets, kNoSlot) {}

uint32_t TableShard::Find(uint64_t id) const {
  for (size_t at = Home(id);; at = (at + 1) & (buckets_.size() - 1)) {
    const uint32_t slot = buckets_[at];
    if (slot == kNoSlot || nodes_[slot].id == id) return slot;
  }
}

void TableShard::Touch(uint32_t slot) {
  if (slot != newest_) {
    Unlink(slot);
    LinkAsNewest(slot);
  }
}

uint32_t TableShard::Insert(uint64_t id) {
  uint32_t slot = size();
  if (slot < capacity_) {
    nodes_.push_back({id, kNoSlot, kNoSlot});
    rows_.resize(rows_.size() + row_floats_);
    if (nodes_.size() * 2 > buckets_.size())
      Grow();
    else
      Place(id, slot);
  } else {
    slot = oldest_;
    Remove(nodes_[slot].id);
    Unlink(slot);
    ++evictions_;
    nodes_[slot].id = id;
    Place(id, slot);
  }
  LinkAsNewest(slot);
  return slot;
}

size_t TableShard::Home(uint64_t id) const { return MixBits(id) & (buckets_.size() - 1); }

void TableShard::Place(uint64_t id, uint32_t slot) {
  size_t at = Home(id);
  while (buckets_[at] != kNoSlot) at = (at + 1) & (buckets_.size() - 1);
  buckets_[at] = slot;
}

// No tombstones: an entry behind the gap moves into it, unless the gap is before the entry's home position.
void TableShard::Remove(uint64_t id) {
  const size_t mask = buckets_.size() - 1;
  size_t gap = Home(id);
  while (nodes_[buckets_[gap]].id != id) gap = (gap + 1) & mask;
  for (size_t at = (gap + 1) & mask; buckets_[at] != kNoSlot; at = (at + 1) & mask) {
    const size_t home = Home(nodes_[buckets_[at]].id);
    if (((at - home) & mask) >= ((at - gap) & mask)) {
      buckets_[gap] = buckets_[at];
      gap = at;
    }
  }
  buckets_[gap] = kNoSlot;
}

void TableShard::Grow() {
  buckets_.assign(buckets_.size() * 2, kNoSlot);
  for (uint32_t slot = 0; slot < size(); ++slot) Place(nodes_[slot].id, slot);
}

void TableShard::Unlink(uint32_t slot) {
  const Node& node = nodes_[slot];
  (node.newer == kNoSlot ? newest_ : nodes_[node.newer].older) = node.older;
  (node.older == kNoSlot ? oldest_ : nodes_[node.older].newer) = node.newer;
}

void TableShard::LinkAsNewest(uint32_t slot) {
  nodes_[slot].newer = kNoSlot;
  nodes_[slot].older = newest_;
  (newest_ == kNoSlot ? oldest_ : nodes_[newest_].newer) = slot;
  newest_ = slot;
}

}  // namespace embedding_job
