// The process's registry: its families and series, the memory of their values, and the segment in which an agent sees them.
//
// A family or series that is accepted exists in the registry first, and is then published: its cells and its record are written
// to the segment's file, in the order in which the registry accepted them. A series is accepted only if the segment has space
// for it. If it cannot be published now (the filesystem is full, the process has no file descriptor left, ...), it is published
// later. Until then the series waits: it counts in private memory, in the waiting lane.
//
// The cells of the common lane are in one of these places:
//   - before any export was requested: in private memory, and in the common lane's table.
//   - waiting: in private memory, in the waiting lane's table, not in the common lane's. So each use takes the slow path, which
//     locks waiting_mutex_ for the update, and once a second tries to publish waiting series. No thread has a lane chunk of a
//     waiting range, so a chunk is moved to the file, under that mutex, without losing a count.
//   - in the file, and in the common lane's table. They never move again.
//
// The registry is in static storage, made when the library is loaded, and never destroyed, since handles are used after main.
// If memory for a new metric runs out, the metric counts nothing, and the registry counts the refusal.
//
// Thread safety: any method, from any thread. Looking up an existing series takes no lock. All other methods take the
// registry's mutex; fork_locks.h has the order of the library's mutexes.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fork_locks.h"
#include "identity.h"
#include "persia/metrics/init.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/internal/bucket_search.h"
#include "persia/metrics/labels.h"
#include "persia/metrics/values.h"
#include "private_memory.h"
#include "rank_variables.h"
#include "segment_format.h"
#include "segment_writer.h"
#include "series_index.h"
#include "thread_annotations.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace internal {

struct FamilyValues;
struct SeriesValues;

// One (group, name). Immutable, except for its atomics.
struct FamilyNode {
  size_t hash;
  std::string group;
  std::string name;
  std::string help;
  std::string unit;
  segment::Kind kind;
  uint8_t gauge_policy;
  uint16_t max_buckets;  // of a native histogram
  uint32_t bound_count;
  std::vector<double> bounds;                  // followed by +infinity
  std::unique_ptr<const BucketIndex> buckets;  // null unless the family is of histograms
  uint32_t ordinal;                            // among the families, and among their records
  std::atomic<bool> conflict_logged = false;
  std::atomic<bool> loss_logged = false;
  // The slot of the series without labels, once it exists: metrics that are looked up by name at each call have no labels.
  std::atomic<uint32_t> unlabelled_slot = kScratchSlot;

  [[nodiscard]] std::span<const double> real_bounds() const { return {bounds.data(), bound_count}; }
  [[nodiscard]] FamilyRecord record() const {
    return {kind, gauge_policy, real_bounds(), group, name, help, unit, max_buckets};
  }
};

// The buckets of a family of histograms. A refused family (null) has a single bucket.
inline const BucketIndex* BucketsOf(const FamilyNode* family) { return family == nullptr ? &kNoBounds : family->buckets.get(); }

// One series. Immutable, except for its removal, which the registry's mutex guards.
struct SeriesNode {
  SeriesNode(size_t its_hash, FamilyNode* its_family) : hash(its_hash), family(its_family) {}

  size_t hash;
  FamilyNode* family;
  LabelSet labels = {};  // sorted by name
  uint32_t slot = 0;
  // Readers leave it out. Read without the lock: relaxed, since no other memory is ordered by it.
  std::atomic<bool> removed = false;
  uint64_t record_at = 0;  // in the segment, once it is published

  [[nodiscard]] SeriesRecord record() const { return {family->ordinal, slot, labels, removed.load(std::memory_order_relaxed)}; }
};

}  // namespace internal

// The definition of a requested family.
struct FamilyRequest {
  segment::Kind kind;
  std::string_view group;
  std::string_view name;
  std::string_view help = {};
  std::string_view unit = {};
  uint8_t gauge_policy = 0;
  std::span<const double> bounds = {};
  uint16_t max_buckets = 0;
};

// Where event records are written: to private memory or to the file.
struct EventRing {
  std::atomic<uint64_t>* recorded;
  segment::EventSlot* slots;
};

// What the process's readers subtracted, and the last values of gauges and streams, when a test's scope began: by slot.
struct TestScope {
  const pid_t pid = getpid();
  std::vector<uint64_t> cells = {};
};

class Registry {
 public:
  static Registry& Get() noexcept;
  // Called when the library is loaded.
  static void MakeAtLoad() noexcept;

  // Finds or makes the family. Null: it is refused, which is logged and counted.
  internal::FamilyNode* FindOrAddFamily(const FamilyRequest& request) noexcept PERSIA_EXCLUDES(mutex_);
  // Finds or makes a series, and returns its slot; kScratchSlot if the series is refused, or if metrics are disabled.
  uint32_t FindOrAddSeries(internal::FamilyNode* family, LabelView labels) noexcept PERSIA_EXCLUDES(mutex_);
  uint32_t FindOrAddChild(internal::FamilyNode* family, const LabelSet& labels) noexcept PERSIA_EXCLUDES(mutex_);

  // The slot of a series that is not removed; kScratchSlot: there is none.
  [[nodiscard]] uint32_t FindSlot(const internal::FamilyNode* family, LabelView labels) const noexcept;
  // The family's first slot after `slot`, of a series that is not removed; kScratchSlot: there is none.
  [[nodiscard]] uint32_t NextSlotOf(const internal::FamilyNode* family, uint32_t slot) noexcept PERSIA_EXCLUDES(mutex_);
  // The family of a metric, or null.
  [[nodiscard]] internal::FamilyNode* FindMetric(std::string_view group, std::string_view name) const noexcept;
  // Removes a series: readers leave it out until it is requested again. Its handles stay valid. False: it does not exist, or
  // memory ran out, which is logged; then nothing has changed.
  bool Remove(uint32_t slot) noexcept PERSIA_EXCLUDES(mutex_);

  InitResult Init(const Options& options) noexcept PERSIA_EXCLUDES(mutex_);
  void SetProcessGroupRank(int32_t rank) noexcept PERSIA_EXCLUDES(mutex_);
  // Whether Init or the environment requested an export, and metrics are not disabled. Opens the segment if necessary.
  bool Exporting() noexcept PERSIA_EXCLUDES(mutex_);

  // The calling thread's chunk for `slot`, which it claims if necessary. Null: it gets none; use the common lane.
  internal::Cell* ClaimChunk(uint32_t slot) noexcept PERSIA_EXCLUDES(mutex_);
  // The chunk for `slot` in the common lane or the waiting lane. In the latter case sets `*locked`: the caller uses the chunk
  // and then calls UnlockWaiting.
  internal::Cell* CommonChunk(uint32_t slot, bool* locked) noexcept PERSIA_THREAD_ATTRIBUTE(no_thread_safety_analysis);
  void UnlockWaiting() noexcept PERSIA_THREAD_ATTRIBUTE(no_thread_safety_analysis) { waiting_mutex_.Unlock(); }

  void CountDropped(segment::Drop why) noexcept PERSIA_EXCLUDES(mutex_);
  // The same of this metric, also in the counter persia_metrics_lost_total.
  void CountLost(segment::Drop why, std::string_view group, std::string_view name) noexcept PERSIA_EXCLUDES(mutex_);
  // Of the metric with a series at `slot`. The first time is logged.
  void CountLost(segment::Drop why, uint32_t slot) noexcept PERSIA_EXCLUDES(mutex_);

  // Whether metrics are disabled, which never changes back. Reads the environment if that was not done yet.
  [[nodiscard]] bool disabled() noexcept PERSIA_EXCLUDES(mutex_);
  // The same, without reading the environment: false if that was not done yet.
  [[nodiscard]] bool known_disabled() const noexcept { return disabled_.load(std::memory_order_relaxed); }

  // Read cells, without a lock: the sum over the lanes, or the common lane's cell, and `unset` if there is none yet.
  [[nodiscard]] double CounterAt(uint32_t slot) const noexcept;
  [[nodiscard]] uint64_t WholeAt(uint32_t slot) const noexcept;
  [[nodiscard]] double ClockAt(uint32_t slot) const noexcept;  // in seconds
  [[nodiscard]] double DoubleAt(uint32_t slot) const noexcept;
  [[nodiscard]] uint64_t CommonAt(uint32_t slot, uint64_t unset) const noexcept;
  [[nodiscard]] StreamValue StreamAt(uint32_t slot) const noexcept;
  // The value of a series (SeriesSnapshot::value); nothing if there is no such series, or metrics are disabled.
  [[nodiscard]] std::optional<double> ValueOf(std::string_view group, std::string_view name, LabelView labels) const noexcept;
  [[nodiscard]] uint64_t EventCount(std::string_view type, std::string_view name) const noexcept;
  // The values of all series, in the order of their creation; none if metrics are disabled.
  [[nodiscard]] std::vector<internal::FamilyValues> Values() PERSIA_EXCLUDES(mutex_);

  // All values start from zero for the process's readers, and gauges are as never set, until EndScope. Aborts if memory runs
  // out.
  TestScope* BeginScope() noexcept PERSIA_EXCLUDES(mutex_);
  void EndScope(TestScope* scope) noexcept PERSIA_EXCLUDES(mutex_);

  // The ring's slot for a new record, and its ticket. Null: there is no ring.
  segment::EventSlot* NextEventSlot(uint64_t* ticket) noexcept;

 private:
  // A thread's table, its scratch page, and this struct share one mapping.
  struct Lane {
    internal::Table* table;
    uint32_t id;
    Lane* next_free;
    Lane* next;  // in the list of all lanes
    void* memory;
    size_t bytes;
  };
  enum class State : uint8_t {
    kUnopened,   // the environment was not read yet, or not yet in a forked child
    kPrivate,    // there is no file: no export was requested, or it failed
    kExporting,  // there is a file
  };

  Registry() noexcept;

  // registry.cc: families and series.
  [[nodiscard]] const internal::SeriesNode* FindSeries(std::string_view group, std::string_view name, bool event,
                                                       LabelView labels) const noexcept;
  [[nodiscard]] internal::SeriesNode* FindSeries(const internal::FamilyNode* family, LabelView labels) const noexcept;
  [[nodiscard]] internal::FamilyNode* FindFamily(std::string_view group, std::string_view name, bool event,
                                                 size_t hash) const noexcept;
  [[nodiscard]] internal::SeriesNode* FindSorted(const internal::FamilyNode* family, LabelView sorted,
                                                 size_t hash) const noexcept;
  internal::FamilyNode* AddFamily(const FamilyRequest& request, size_t hash) PERSIA_REQUIRES(mutex_);
  // REQUIRES: at most kMaxLabels labels, sorted by name.
  uint32_t FindOrAddSorted(internal::FamilyNode* family, LabelView sorted) PERSIA_EXCLUDES(mutex_);
  uint32_t AddSeries(internal::FamilyNode* family, std::span<const Label> sorted, size_t hash) PERSIA_REQUIRES(mutex_);
  // registry_remove.cc.
  [[nodiscard]] size_t IndexOf(uint32_t slot) const noexcept PERSIA_REQUIRES(mutex_);
  // Exposes a removed series again, from zero. False: memory ran out.
  bool Restore(internal::SeriesNode* node) noexcept PERSIA_REQUIRES(mutex_);
  // Makes what was counted until now the base of a series, and takes its last value away. False: memory ran out.
  bool StartFromZero(const internal::SeriesNode& node) noexcept PERSIA_REQUIRES(mutex_);
  // Sets the last value of a gauge or stream.
  void SetLast(const internal::SeriesNode& node, uint64_t bits) noexcept PERSIA_REQUIRES(mutex_);
  void SetRemoved(internal::SeriesNode* node, bool removed) noexcept PERSIA_REQUIRES(mutex_);
  // Counts a metric that is refused, or that has to wait, and logs the first one of each reason.
  void Report(const internal::FamilyNode& family, segment::Drop why, std::string_view consequence) noexcept;

  // registry_open.cc: the decision whether and where to export.
  // Reads the environment, unless that was done, and makes the segment if an export is requested. False: metrics are disabled.
  bool Open() PERSIA_REQUIRES(mutex_);
  // The same, without the lock.
  void OpenIfUnopened() noexcept PERSIA_EXCLUDES(mutex_);
  // Makes the segment's file. False: this failed, which is logged, or the agent has disabled metrics.
  bool Export() noexcept PERSIA_REQUIRES(mutex_);
  bool TryExport(std::string* error) PERSIA_REQUIRES(mutex_);
  void TakeIdentity(Identity wanted) PERSIA_REQUIRES(mutex_);
  // If the segment has another identity, it waits to be written.
  void Renew(Identity renewed) PERSIA_REQUIRES(mutex_);

  // registry_publish.cc: from private memory to the file.
  // Publishes new metrics, unless older ones wait. False: they wait.
  bool PublishNew() noexcept PERSIA_REQUIRES(mutex_);
  // Tries to publish all metrics that are not published.
  void Recover() noexcept PERSIA_REQUIRES(mutex_);
  bool PublishAll() noexcept PERSIA_REQUIRES(mutex_);
  bool MoveChunk(uint32_t range) noexcept PERSIA_REQUIRES(mutex_);
  bool MakeFileRing() noexcept PERSIA_REQUIRES(mutex_);
  // Whether space was refused a moment ago. Once a second it tries again.
  bool IsShort() noexcept PERSIA_EXCLUDES(mutex_);
  void TryLater() noexcept;
  // Makes all metrics wait that were made before an export was requested. The counts in the lanes are added to the common lane.
  void WithdrawAll() noexcept PERSIA_REQUIRES(mutex_);
  // The slot for a new series with `cells` cells and a record of `bytes`. REQUIRES: the segment has space for the record.
  uint32_t NextSlot(uint32_t cells, uint64_t bytes) noexcept PERSIA_REQUIRES(mutex_);
  [[nodiscard]] bool HasCommonChunk(uint32_t range) const PERSIA_REQUIRES(mutex_);
  // Sets the first cell of a series in the common lane. REQUIRES: the cell does not move.
  void SetFirstCell(const internal::SeriesNode& node, uint64_t bits) noexcept PERSIA_REQUIRES(mutex_);
  // Makes the chunk of the common lane, with the first values of its series. False: there is no memory at all.
  bool EnsureCommonChunk(uint32_t range) noexcept PERSIA_REQUIRES(mutex_);
  // Makes the chunks of all series, and the ring if there are events, in a forked child.
  void EnsureAllChunks() noexcept PERSIA_REQUIRES(mutex_);
  void EnsureRing() noexcept PERSIA_REQUIRES(mutex_);
  internal::Cell* NewLaneChunk(uint32_t lane, uint32_t range) noexcept PERSIA_REQUIRES(mutex_);
  void FlushDropped() noexcept PERSIA_REQUIRES(mutex_);

  // registry_values.cc. The sum over the lanes, with the base.
  [[nodiscard]] uint64_t RawWholeAt(uint32_t slot) const noexcept;
  [[nodiscard]] double RawDoubleAt(uint32_t slot) const noexcept;
  // `take(chunk)` for each lane's chunk of the slot.
  template <class Take>
  void ForEachLane(uint32_t slot, const Take& take) const noexcept;
  [[nodiscard]] internal::SeriesValues Read(const internal::SeriesNode& node) const;

  // registry_lanes.cc: threads and forks.
  // A lane in no list. Null: there is no memory.
  static Lane* NewLane(uint32_t id) noexcept;
  Lane* AcquireLane() PERSIA_REQUIRES(mutex_);
  void ReleaseLane(Lane* lane) PERSIA_EXCLUDES(mutex_);
  void ResetAfterFork() PERSIA_REQUIRES(mutex_);
  static void OnThreadEnd(void* lane);
  static void AfterForkInChild() PERSIA_THREAD_ATTRIBUTE(no_thread_safety_analysis);

  const bool thread_ends_are_seen_;  // if not, no thread gets a lane, since lanes would not be returned

  SeriesIndex<internal::FamilyNode> families_;  // read without the lock
  SeriesIndex<internal::SeriesNode> series_;    // read without the lock
  std::atomic<bool> open_ = false;              // state_ is not kUnopened
  std::atomic<bool> disabled_ = false;          // never reset; new series count nothing
  std::atomic<bool> export_wanted_ = false;     // never reset
  std::atomic<int64_t> retry_at_ = 0;           // in monotonic milliseconds; 0: nothing was refused
  std::atomic<EventRing*> ring_ = nullptr;
  // The newest; read without the lock; a lane is never freed, except in a forked child.
  std::atomic<Lane*> all_lanes_ = nullptr;
  std::atomic<uint64_t> events_before_file_ = 0;
  std::atomic<uint64_t> dropped_before_file_[static_cast<size_t>(segment::Drop::kCount)] = {};
  std::atomic<bool> reported_[static_cast<size_t>(segment::Drop::kCount)] = {};
  std::atomic<bool> export_failure_logged_ = false;
  std::atomic<bool> second_init_logged_ = false;

  Mutex& mutex_;
  Mutex& waiting_mutex_;  // see above
  State state_ PERSIA_GUARDED_BY(mutex_) = State::kUnopened;
  Identity identity_ PERSIA_GUARDED_BY(mutex_);
  OwnRanks own_ranks_ PERSIA_GUARDED_BY(mutex_);
  bool identity_known_ PERSIA_GUARDED_BY(mutex_) = false;
  bool initialized_ PERSIA_GUARDED_BY(mutex_) = false;   // by Init
  std::string export_detail_ PERSIA_GUARDED_BY(mutex_);  // the segment's path, or why there is none
  // Not guarded as a whole: CountDropped uses its thread-safe method without the lock.
  SegmentWriter writer_;
  PrivateMemory private_ PERSIA_GUARDED_BY(mutex_);
  size_t families_published_ PERSIA_GUARDED_BY(mutex_) = 0;  // the first ones are
  size_t series_published_ PERSIA_GUARDED_BY(mutex_) = 0;
  bool identity_waits_ PERSIA_GUARDED_BY(mutex_) = false;  // to be written again
  bool waits_ PERSIA_GUARDED_BY(mutex_) = false;           // the last try to publish failed
  EventRing private_ring_ PERSIA_GUARDED_BY(mutex_){};
  EventRing file_ring_ PERSIA_GUARDED_BY(mutex_){};
  uint32_t next_slot_ PERSIA_GUARDED_BY(mutex_) = internal::kChunkCells;  // range 0 is scratch
  uint32_t next_lane_ PERSIA_GUARDED_BY(mutex_) = 1;                      // 0 is the common lane
  Lane* free_lanes_ PERSIA_GUARDED_BY(mutex_) = nullptr;
};

namespace internal {

// The chunks of the common lane that wait to be published.
extern Table waiting_lane[kMaxRanges];
// What the cells of all lanes held together when their series was removed, or requested again after that, or when a test's
// scope began: this process's values are what was counted since. Of a clock, its nanoseconds. In private memory; null: 0.
extern Table base_lane[kMaxRanges];
// Range 0 of the common lane, which is never read.
extern Cell common_scratch[kChunkCells];

// Release: pairs with the acquire of a thread that reads another thread's lane, or the common one.
inline void SetChunk(Table* table, uint32_t range, Cell* chunk) { __atomic_store_n(&table[range], chunk, __ATOMIC_RELEASE); }

}  // namespace internal
}  // namespace abi_1
}  // namespace persia::metrics
