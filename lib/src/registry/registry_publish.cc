// Moves metrics from private memory to the segment's file: immediately, or later, if the file cannot be made or grow now.

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <iterator>
#include <vector>

#include "lane_cells.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {

using internal::Cell;
using internal::CellIn;
using internal::common_lane;
using internal::ReadChunk;
using internal::SeriesNode;
using internal::SetChunk;
using internal::Table;
using internal::waiting_lane;
using segment::EventSlot;
using segment::Kind;

namespace {

constexpr int64_t kRetryMs = 1000;

int64_t MonotonicMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

uint32_t RangeOf(uint32_t slot) { return slot >> internal::kChunkBits; }

// Adds a series' values in a lane to those in the common lane.
void AddCells(const SeriesNode& node, const Cell* from, Cell* to) {
  ForEachLaneCell(
      *node.family,
      [&](uint32_t offset, bool is_double) {
        const uint64_t bits = from[(node.slot + offset) % internal::kChunkCells].load(std::memory_order_relaxed);
        Cell& cell = CellIn(to, node.slot + offset);
        const uint64_t sum = cell.load(std::memory_order_relaxed);
        cell.store(is_double ? std::bit_cast<uint64_t>(std::bit_cast<double>(sum) + std::bit_cast<double>(bits)) : sum + bits,
                   std::memory_order_relaxed);
      });
}

// The first series whose slot is in `range` or above.
auto FirstInRange(const std::vector<SeriesNode*>& nodes, uint32_t range) {
  return std::ranges::lower_bound(nodes, range << internal::kChunkBits, {}, &SeriesNode::slot);
}

// Copies the complete records. A record that another thread writes at this moment is left out.
void CopyRing(const EventSlot* from, EventSlot* to, uint64_t slots) {
  for (uint64_t i = 0; i < slots; ++i) {
    const uint64_t sequence = from[i].sequence.load(std::memory_order_acquire);
    if (sequence % 2 != 0) continue;
    for (size_t word = 0; word < std::size(to[i].words); ++word)
      to[i].words[word].store(from[i].words[word].load(std::memory_order_acquire), std::memory_order_relaxed);
    if (from[i].sequence.load(std::memory_order_relaxed) != sequence) continue;
    to[i].sequence.store(sequence, std::memory_order_release);
  }
}

}  // namespace

bool Registry::IsShort() noexcept {
  const int64_t at = retry_at_.load(std::memory_order_relaxed);
  if (at == 0) [[likely]]
    return false;
  // TryLock: no thread waits while another one tries.
  if (MonotonicMs() >= at && mutex_.TryLock()) {
    Recover();
    mutex_.Unlock();
  }
  return retry_at_.load(std::memory_order_relaxed) != 0;
}

void Registry::TryLater() noexcept { retry_at_.store(MonotonicMs() + kRetryMs, std::memory_order_relaxed); }

bool Registry::PublishNew() noexcept {
  if (!waits_ || MonotonicMs() >= retry_at_.load(std::memory_order_relaxed)) Recover();
  return !waits_;
}

void Registry::Recover() noexcept {
  const bool wanted = export_wanted_.load(std::memory_order_relaxed) && !disabled_.load(std::memory_order_relaxed);
  waits_ = wanted && ((state_ != State::kExporting && !Export()) || !PublishAll());
  if (waits_)
    TryLater();
  else
    retry_at_.store(0, std::memory_order_relaxed);
  FlushDropped();
}

bool Registry::PublishAll() noexcept {
  // If the segment is full, the file keeps the former identity.
  if (identity_waits_ && !writer_.AddIdentity(identity_) && writer_.refusal() != segment::Drop::kSegmentFull) return false;
  identity_waits_ = false;
  const auto& families = families_.nodes();
  for (; families_published_ < families.size(); ++families_published_)
    if (!writer_.AddFamily(families[families_published_]->record())) return false;
  const auto& series = series_.nodes();
  for (; series_published_ < series.size(); ++series_published_) {
    SeriesNode& node = *series[series_published_];
    if (!MoveChunk(RangeOf(node.slot)) || !writer_.AddSeries(node.record(), &node.record_at)) return false;
  }
  return ring_.load(std::memory_order_relaxed) != &private_ring_ || MakeFileRing();
}

bool Registry::MoveChunk(uint32_t range) noexcept {
  if (!HasCommonChunk(range) && !EnsureCommonChunk(range)) return false;  // in a forked child that found no memory before
  if (common_lane[range] != nullptr) return true;
  Cell* to = writer_.AddChunk(0, range);
  if (to == nullptr) return false;
  MutexLock lock(waiting_mutex_);
  const Cell* from = waiting_lane[range];
  for (uint32_t i = 0; i < internal::kChunkCells; ++i)
    to[i].store(from[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
  SetChunk(common_lane, range, to);
  SetChunk(waiting_lane, range, nullptr);
  return true;
}

uint32_t Registry::NextSlot(uint32_t cells, uint64_t bytes) noexcept {
  if (state_ == State::kExporting && !waits_ && !writer_.AllocateRecords(bytes)) {
    waits_ = true;
    TryLater();
  }
  const uint32_t range = RangeOf(next_slot_);
  // A series is in one chunk. A waiting series must not be in a chunk of the file, which threads use without the slow path.
  const bool fits = next_slot_ % internal::kChunkCells + cells <= internal::kChunkCells;
  return fits && !(waits_ && common_lane[range] != nullptr) ? next_slot_ : (range + 1) << internal::kChunkBits;
}

bool Registry::HasCommonChunk(uint32_t range) const { return common_lane[range] != nullptr || waiting_lane[range] != nullptr; }

bool Registry::EnsureCommonChunk(uint32_t range) noexcept {
  const bool exported = export_wanted_.load(std::memory_order_relaxed);
  Cell* chunk = nullptr;
  if (exported && !waits_ && state_ == State::kExporting) {
    chunk = writer_.AddChunk(0, range);
    if (chunk == nullptr) {
      waits_ = true;
      TryLater();
    }
  }
  Table* table = chunk != nullptr || !exported ? common_lane : waiting_lane;
  if (chunk == nullptr) {
    chunk = static_cast<Cell*>(private_.NewPage());
    if (chunk == nullptr) return false;
  }
  // The first values are set before another thread sees the chunk. In a forked child, it may use the chunk immediately.
  const auto& nodes = series_.nodes();
  for (auto node = FirstInRange(nodes, range); node != nodes.end() && RangeOf((*node)->slot) == range; ++node)
    CellIn(chunk, (*node)->slot).store(FirstValueOf((*node)->family->kind), std::memory_order_relaxed);
  SetChunk(table, range, chunk);
  return true;
}

void Registry::SetFirstCell(const SeriesNode& node, uint64_t bits) noexcept {
  Cell* chunk = ReadChunk(common_lane, node.slot, std::memory_order_relaxed);
  if (chunk == nullptr) chunk = ReadChunk(waiting_lane, node.slot, std::memory_order_relaxed);
  CellIn(chunk, node.slot).store(bits, std::memory_order_relaxed);
}

void Registry::EnsureAllChunks() noexcept {
  for (const SeriesNode* node : series_.nodes()) {
    if (!HasCommonChunk(RangeOf(node->slot))) EnsureCommonChunk(RangeOf(node->slot));
    if (node->family->kind == Kind::kEvent) EnsureRing();
  }
}

void Registry::EnsureRing() noexcept {
  if (ring_.load(std::memory_order_relaxed) != nullptr || writer_.ring_slots() == 0) return;
  if (state_ == State::kExporting && !waits_ && MakeFileRing()) return;
  void* memory = private_ring_.slots;
  if (memory == nullptr) {
    memory = mmap(nullptr, writer_.ring_slots() * sizeof(EventSlot), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;  // events are counted, but leave no records
  }
  private_ring_ = {&events_before_file_, static_cast<EventSlot*>(memory)};
  ring_.store(&private_ring_, std::memory_order_release);
}

bool Registry::MakeFileRing() noexcept {
  EventSlot* slots = writer_.AddRing();
  if (slots == nullptr) return false;
  file_ring_ = {writer_.events_recorded(), slots};
  if (ring_.load(std::memory_order_relaxed) != nullptr) {
    CopyRing(private_ring_.slots, slots, writer_.ring_slots());
    file_ring_.recorded->store(events_before_file_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  ring_.store(&file_ring_, std::memory_order_release);
  return true;
}

Cell* Registry::NewLaneChunk(uint32_t lane, uint32_t range) noexcept {
  Cell* chunk = nullptr;
  if (!export_wanted_.load(std::memory_order_relaxed)) {
    chunk = static_cast<Cell*>(private_.NewPage());
  } else if (common_lane[range] != nullptr && writer_.Fits(0, 1)) {
    chunk = writer_.AddChunk(lane, range);
    if (chunk != nullptr) writer_.Reserve(0, 1);
  }
  if (chunk == nullptr) TryLater();
  return chunk;
}

// A value that another thread adds at this moment may be lost: the thread may be about to write to a chunk that was read
// already. A thread that reads values without the lock may miss some at this moment.
void Registry::WithdrawAll() noexcept {
  MutexLock lock(waiting_mutex_);
  const uint32_t ranges = RangeOf(next_slot_) + 1;
  const auto& nodes = series_.nodes();
  for (uint32_t range = 1; range < ranges; ++range) {
    SetChunk(waiting_lane, range, common_lane[range]);
    SetChunk(common_lane, range, nullptr);
    for (const Lane* lane = all_lanes_.load(std::memory_order_relaxed); lane != nullptr; lane = lane->next) {
      const Cell* from = lane->table[range];
      if (from == nullptr) continue;
      SetChunk(lane->table, range, nullptr);
      for (auto at = FirstInRange(nodes, range); at != nodes.end() && RangeOf((*at)->slot) == range; ++at)
        AddCells(**at, from, waiting_lane[range]);
    }
  }
}

void Registry::FlushDropped() noexcept {
  if (state_ != State::kExporting) return;
  for (size_t why = 0; why < std::size(dropped_before_file_); ++why)
    if (dropped_before_file_[why].load(std::memory_order_relaxed) > 0)
      writer_.CountDropped(static_cast<segment::Drop>(why), dropped_before_file_[why].exchange(0, std::memory_order_relaxed));
}

}  // namespace abi_1
}  // namespace persia::metrics
