// The one registry of a process: its families and series, its lanes, and the segment that holds their values.
//
// Lives in static storage and is never destroyed: handles are used after main. Where memory for its own bookkeeping runs out,
// the metric counts nothing.
// Thread safety: any method, from any thread. Looking up what exists takes no lock; the rest takes the one mutex, which the
// fork handlers hold across a fork.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "identity.h"
#include "persia/metrics/init.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/internal/bucket_search.h"
#include "persia/metrics/labels.h"
#include "segment_format.h"
#include "segment_writer.h"
#include "series_index.h"
#include "thread_annotations.h"

namespace persia::metrics {
namespace internal {

struct FamilyValues;

// One (group, name). Immutable, but for its atomics.
struct FamilyNode {
  size_t hash;
  std::string group;
  std::string name;
  std::string help;
  std::string unit;
  segment::Kind kind;
  uint8_t gauge_policy;
  uint32_t bound_count;
  std::vector<double> bounds;                  // and +infinity behind the last
  std::unique_ptr<const BucketIndex> buckets;  // of a histogram
  uint32_t ordinal;
  std::atomic<bool> conflict_said = false;
  // Of its series without labels, once there is one: it is what metrics by name are asked for.
  std::atomic<uint32_t> plain_slot = kScratchSlot;

  [[nodiscard]] std::span<const double> real_bounds() const { return {bounds.data(), bound_count}; }
};

// One series. Immutable.
struct SeriesNode {
  size_t hash;
  const FamilyNode* family;
  LabelSet labels;  // sorted by name
  uint32_t slot;
};

}  // namespace internal

// What a family is asked to be.
struct FamilyRequest {
  segment::Kind kind;
  std::string_view group;
  std::string_view name;
  const Description& about;
  uint8_t gauge_policy = 0;
  std::span<const double> bounds = {};
};

class Registry {
 public:
  static Registry& Get() noexcept;

  // The family, made if it is new; null if it is refused (which is logged and counted).
  internal::FamilyNode* FindOrAddFamily(const FamilyRequest& request) noexcept PERSIA_EXCLUDES(mutex_);
  // The slot of a series, made if it is new; kScratchSlot if it is refused, or metrics are disabled.
  uint32_t FindOrAddSeries(internal::FamilyNode* family, LabelView labels) noexcept PERSIA_EXCLUDES(mutex_);
  uint32_t FindOrAddChild(internal::FamilyNode* family, const LabelSet& labels) noexcept PERSIA_EXCLUDES(mutex_);

  InitResult Init(const Options& options) noexcept PERSIA_EXCLUDES(mutex_);
  // Opens the segment if the environment asks for it.
  bool Exporting() noexcept PERSIA_EXCLUDES(mutex_);

  // The calling thread's chunk for `slot`, claimed if need be. Null: there is none to be had, use CommonChunk.
  internal::Cell* ClaimChunk(uint32_t slot) noexcept PERSIA_EXCLUDES(mutex_);
  // The common lane's chunk for `slot`.
  internal::Cell* CommonChunk(uint32_t slot) noexcept PERSIA_EXCLUDES(mutex_);

  void CountDropped(segment::Drop why) noexcept PERSIA_EXCLUDES(mutex_);

  // Whether metrics are disabled, once and for all.
  [[nodiscard]] bool disabled() noexcept PERSIA_EXCLUDES(mutex_);
  // The same as far as it is known, without asking the environment.
  [[nodiscard]] bool known_disabled() const noexcept { return disabled_.load(std::memory_order_relaxed); }

  // What all series stand at, in the order in which families and series were made; nothing if metrics are disabled.
  [[nodiscard]] std::vector<internal::FamilyValues> Values() PERSIA_EXCLUDES(mutex_);

  // The ring's slot for a new record, and its ticket; null if there is no ring.
  segment::EventSlot* NextEventSlot(uint64_t* ticket) noexcept;

 private:
  // A thread's table, its scratch page, and this struct share one mapping.
  struct Lane {
    internal::Table* table;
    uint32_t id;
    Lane* next_free;
    Lane* next;  // of all
    void* memory;
    size_t bytes;
  };
  enum class State : uint8_t {
    kUnopened,   // no segment yet; again so in a forked child
    kPrivate,    // a segment in private memory: nobody asked for more, or it could not be had
    kExporting,  // a segment in a file
  };

  Registry() noexcept;
  static bool ListenForThreadEnds() noexcept;

  // Makes the segment exist, as the environment says. False: there is none, since metrics are disabled or memory is out.
  bool Open() PERSIA_REQUIRES(mutex_);
  // Moves the segment to where the agent sees it. False, and one line: that can't be, or the agent says that metrics are off.
  bool Export() PERSIA_REQUIRES(mutex_);
  // Gives the identity a run id where PERSIA_RUN_ID gave none: the agent's, else torchrun's.
  void AdoptRunId(Identity* identity) const PERSIA_REQUIRES(mutex_);
  // Writes all that is registered into the new segment of a forked child.
  void Rebuild() PERSIA_REQUIRES(mutex_);
  internal::FamilyNode* AddFamily(const FamilyRequest& request, size_t hash) PERSIA_REQUIRES(mutex_);
  // REQUIRES: at most kMaxLabels, by name.
  uint32_t FindOrAddSorted(internal::FamilyNode* family, LabelView sorted) PERSIA_EXCLUDES(mutex_);
  uint32_t AddSeries(internal::FamilyNode* family, std::span<const Label> sorted, size_t hash) PERSIA_REQUIRES(mutex_);
  // Makes the common-lane cells of a series exist, with their first values, and then publishes the series.
  bool Publish(const internal::SeriesNode& node) PERSIA_REQUIRES(mutex_);
  bool EnsureCommonChunk(uint32_t range) PERSIA_REQUIRES(mutex_);
  void ReportFull(const internal::FamilyNode& family) PERSIA_REQUIRES(mutex_);
  Lane* AcquireLane() PERSIA_REQUIRES(mutex_);
  void ReleaseLane(Lane* lane) PERSIA_EXCLUDES(mutex_);
  void ResetAfterFork() PERSIA_REQUIRES(mutex_);

  static void OnThreadEnd(void* lane);
  static void BeforeFork() PERSIA_THREAD_ATTRIBUTE(no_thread_safety_analysis);
  static void AfterForkInParent() PERSIA_THREAD_ATTRIBUTE(no_thread_safety_analysis);
  static void AfterForkInChild() PERSIA_THREAD_ATTRIBUTE(no_thread_safety_analysis);

  const bool thread_ends_are_seen_;  // without, no thread gets a lane, since none would come back

  SeriesIndex<internal::FamilyNode> families_;  // read without the lock
  SeriesIndex<internal::SeriesNode> series_;    // read without the lock
  // After a request found no room, the next ones are answered without the lock, but for one in kRetryEvery.
  static constexpr uint32_t kRetryEvery = 1024;
  std::atomic<uint32_t> series_refused_ = 0;
  std::atomic<uint32_t> chunks_refused_ = 0;
  std::atomic<bool> open_ = false;      // writer_ is there to count what was dropped
  std::atomic<bool> disabled_ = false;  // once and for all: new series count nothing
  std::atomic<segment::EventSlot*> ring_ = nullptr;
  std::atomic<bool> full_said_ = false;
  std::atomic<bool> export_said_ = false;

  Mutex mutex_;
  State state_ PERSIA_GUARDED_BY(mutex_) = State::kUnopened;
  Identity identity_ PERSIA_GUARDED_BY(mutex_);
  bool identity_known_ PERSIA_GUARDED_BY(mutex_) = false;
  bool export_wanted_ PERSIA_GUARDED_BY(mutex_) = false;
  std::string agent_run_id_ PERSIA_GUARDED_BY(mutex_);
  std::string export_detail_ PERSIA_GUARDED_BY(mutex_);  // the segment's path, or why there is none
  // CountDropped and NextEventSlot use what of it any thread may: header counts and the ring.
  SegmentWriter writer_;
  uint32_t next_slot_ PERSIA_GUARDED_BY(mutex_) = internal::kChunkCells;  // range 0 is scratch
  uint32_t next_lane_ PERSIA_GUARDED_BY(mutex_) = 1;                      // 0 is the common lane
  Lane* free_lanes_ PERSIA_GUARDED_BY(mutex_) = nullptr;
  Lane* all_lanes_ PERSIA_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace persia::metrics
