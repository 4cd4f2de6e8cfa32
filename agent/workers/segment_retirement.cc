// SegmentSource's part for processes that ended: their values are added to the state, the state is saved, and then their
// segments are removed (ledger/retired_store.h).
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "workers/segment_source.h"

namespace persia::agent {

LastProcess SegmentSource::LastProcessOf(const SegmentReader& reader) {
  const auto& header = reader.header();
  return {.pid = header.pid,
          .pid_namespace = header.pid_namespace,
          .start_ticks = header.start_ticks,
          .restart_count = reader.identity().restart_count,
          .last_change = reader.last_change()};
}

// If a container is lost, so are the segments of its living processes: their values in the state count instead.
void SegmentSource::FoldLost() {
  if (scan_completed_ && !lost_folded_ && retired_.Retires()) {
    lost_folded_ = true;
    retired_.FoldLost(
        [this](const std::string& id) {
          return std::any_of(tracked_.begin(), tracked_.end(),
                             [&](const TrackedSegment& tracked) { return tracked.reader->id() == id; });
        },
        now_);
  }
}

void SegmentSource::SaveLiving() {
  if (!retired_.SavesLiving() || !lost_folded_) return;
  std::map<std::string, std::string> living;
  for (const TrackedSegment& tracked : tracked_) {
    if (tracked.instance) {
      Measurements input = MeasurementsOf(*tracked.reader);
      input.ordinal = tracked.ordinal;
      living.emplace(tracked.reader->id(), RetiredStore::EncodeLiving(input, LastProcessOf(*tracked.reader), now_));
    }
  }
  retired_.SetLiving(std::move(living));
}

// Adds the ended processes to the state and releases their ordinals.
void SegmentSource::FoldEnded() {
  std::erase_if(tracked_, [&](TrackedSegment& tracked) {
    if (tracked.alive || !tracked.instance) return false;
    Measurements input = MeasurementsOf(*tracked.reader);
    input.ended = true;
    input.ordinal = tracked.ordinal;
    if (!retired_.IsFolded(tracked.reader->id())) {
      retired_.Fold(input, LastProcessOf(*tracked.reader), now_);
    }
    if (tracked.is_in_directory) {
      retired_.AddFoldedFile(tracked.reader->id(), tracked.name, tracked.file);
    }
    ReleaseOrdinal(tracked);
    return true;
  });
}

// Saves the state, then removes the files of the ended processes.
void SegmentSource::SaveState() {
  for (const TrackedSegment& tracked : tracked_) {
    if (tracked.alive && tracked.instance) {
      retired_.processes().MarkSeen(*tracked.instance, now_);
    }
  }
  if (!retired_.Retires()) return;
  SaveLiving();
  if (retired_.HasUnsavedChanges()) {
    std::map<std::string, uint32_t> ordinals;
    for (const TrackedSegment& tracked : tracked_) {
      if (tracked.instance) {
        ordinals.emplace(tracked.reader->id(), tracked.ordinal);
      }
    }
    retired_.SetOrdinals(std::move(ordinals));
  }
  retired_.SaveAndRemove(options_.directory, now_);
}

}  // namespace persia::agent
