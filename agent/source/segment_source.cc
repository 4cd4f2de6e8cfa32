#include "source/segment_source.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "source/proc_reader.h"

namespace persia::agent {

SegmentSource::SegmentSource(SegmentSourceOptions options, std::shared_ptr<const Naming> naming)
    : options_(std::move(options)),
      naming_(naming != nullptr ? std::move(naming) : std::make_shared<PlainNaming>()),
      retired_(options_.retired, diagnostics_) {
  merger_ = std::make_unique<Merger>(MergeIdentity{SanitizeText(options_.job), options_.ip_addr}, *naming_, diagnostics_,
                                     options_.limits);
}

SegmentSource::~SegmentSource() = default;

Result<std::shared_ptr<const Snapshot>> SegmentSource::Collect() {
  now_ = {now_.tick + 1, options_.steady(), options_.wall()};
  if (!retired_.Loaded()) {
    retired_.Load(now_);
  }
  Scan();
  FoldLost();
  ReadAll();
  if (retired_.Retires()) {
    AssignPlaces(Whose::kEnded);
    FoldEnded();
  }
  AssignPlaces(Whose::kAll);
  SaveState();

  stats_ = {};
  // The ended first: where there is not room for all series, what was shown goes on to be.
  std::vector<MergeInput> inputs = retired_.processes().Inputs(now_);
  for (const Known& known : known_) {
    if (!OfOurRun(*known.reader)) {
      ++stats_.other_run;
      continue;
    }
    MergeInput input = known.reader->Input();
    input.ended = !known.alive;
    input.ordinal = known.ordinal;
    inputs.push_back(input);
    if (!IsOwn(known)) {
      ++(known.alive ? stats_.live : stats_.dead);
    }
    stats_.bad += known.problem ? 1 : 0;
    stats_.records_skipped += known.reader->records_skipped();
  }
  stats_.other_run += other_runs_.size();
  stats_.retired = retired_.processes().processes();
  stats_.events_lost = events_lost_;
  for (const auto& [name, refused] : refused_) {
    stats_.refused.push_back({PathOf(name), refused.problem});
  }
  for (const MergeInput& input : inputs) {
    stats_.dropped = std::accumulate(std::begin(input.values->dropped), std::end(input.values->dropped), stats_.dropped);
  }
  auto snapshot = merger_->Merge(inputs, now_.wall, now_.steady);
  for (const FamilyLayout& family : snapshot->layout->families) {
    stats_.series += family.series.size();
  }
  stats_.left_out = merger_->left_out();
  stats_.retired_series_refused = retired_.processes().series_refused();
  ListProcesses();
  return snapshot;
}

// Gives each process of our run a number among those of its instance: the one that it had under the former agent, as far as the
// state knows; then the oldest first, as they came. So what is counted by place goes on where it was. Those that are in the
// state already come last: their places are free since then. The ended come before all others, so that who was started in the
// place of one that ended since the last look has its number.
// A new place is written before it shows: an agent that comes after this one was killed could not tell it from those that live
// then.
void SegmentSource::AssignPlaces(Whose whose) {
  std::vector<Known*> without;
  for (Known& known : known_) {
    const SegmentIdentity& identity = known.reader->identity();
    const bool has = known.instance && known.instance->first == identity.role && known.instance->second == identity.replica;
    if (has || !OfOurRun(*known.reader)) {
      continue;
    }
    GiveBackPlace(known);
    without.push_back(&known);
  }
  const auto order = [this](const Known* known) {
    return std::tuple(retired_.Holds(known->reader->id()), known->reader->header().birth_unix_ns, known->reader->id());
  };
  std::sort(without.begin(), without.end(), [&](const Known* a, const Known* b) { return order(a) < order(b); });
  std::erase_if(without, [&](Known* known) {
    known->instance.emplace(known->reader->identity().role, known->reader->identity().replica);
    const std::optional<uint32_t> former = retired_.PlaceOf(known->reader->id());
    if (!former || !ordinals_.TakeThis(*known->instance, *former)) {
      return false;
    }
    known->ordinal = *former;
    return true;
  });
  for (Known* known : without) {
    if (known->alive && whose == Whose::kEnded) {
      known->instance.reset();
    } else {
      known->ordinal = ordinals_.Take(*known->instance);
      retired_.Unsaved();
    }
  }
}

void SegmentSource::GiveBackPlace(Known& known) {
  if (known.instance) {
    ordinals_.GiveBack(*known.instance, known.ordinal);
    known.instance.reset();
  }
}

RetiredPlace SegmentSource::PlaceOf(const SegmentReader& reader) {
  const auto& header = reader.header();
  return {.pid = header.pid,
          .pid_namespace = header.pid_namespace,
          .start_ticks = header.start_ticks,
          .restart_count = reader.identity().restart_count,
          .last_change = reader.last_change()};
}

// A container that is lost takes its segments along, also of processes that lived: what the state says of those counts then.
void SegmentSource::FoldLost() {
  if (looked_through_ && !lost_folded_ && retired_.Retires()) {
    lost_folded_ = true;
    retired_.FoldLost(
        [this](const std::string& id) {
          return std::any_of(known_.begin(), known_.end(), [&](const Known& known) { return known.reader->id() == id; });
        },
        now_);
  }
}

void SegmentSource::KeepLiving() {
  if (!retired_.KeepsLiving() || !lost_folded_) {
    return;
  }
  std::map<std::string, std::string> living;
  for (const Known& known : known_) {
    if (known.instance) {
      MergeInput input = known.reader->Input();
      input.ordinal = known.ordinal;
      living.emplace(known.reader->id(), RetiredStore::Alone(input, PlaceOf(*known.reader), now_));
    }
  }
  retired_.SetLiving(std::move(living));
}

// What ended goes into the state, and leaves its place.
void SegmentSource::FoldEnded() {
  std::erase_if(known_, [&](Known& known) {
    if (known.alive || !known.instance) {
      return false;
    }
    MergeInput input = known.reader->Input();
    input.ended = true;
    input.ordinal = known.ordinal;
    if (!retired_.Holds(known.reader->id())) {
      retired_.Fold(input, PlaceOf(*known.reader), now_);
    }
    if (known.named) {
      retired_.Leaves(known.reader->id(), known.name, known.file);
    }
    GiveBackPlace(known);
    return true;
  });
}

// Writes down what ended and who lives; then the files of the ended can go.
void SegmentSource::SaveState() {
  for (const Known& known : known_) {
    if (known.alive && known.instance) {
      retired_.processes().Saw(*known.instance, now_);
    }
  }
  if (!retired_.Retires()) {
    return;
  }
  KeepLiving();
  if (retired_.Changed()) {
    std::map<std::string, uint32_t> places;
    for (const Known& known : known_) {
      if (known.instance) {
        places.emplace(known.reader->id(), known.ordinal);
      }
    }
    retired_.SetPlaces(std::move(places));
  }
  retired_.SaveAndRemove(options_.directory, now_);
}

std::map<std::string, uint64_t> SegmentSource::EventTickets() const {
  std::map<std::string, uint64_t> tickets;
  for (const Known& known : known_) {
    if (!known.reader->released() && known.reader->events().next() > 0) {
      tickets.emplace(known.reader->id(), known.reader->events().next());
    }
  }
  return tickets;
}

bool SegmentSource::IsOwn(const Known& known) const {
  static const uint64_t own_namespace = ProcReader().PidNamespace("self").value_or(0);
  return options_.own_process && known.alive && known.reader->header().pid == static_cast<uint32_t>(getpid()) &&
         known.reader->header().pid_namespace == own_namespace;
}

void SegmentSource::ListProcesses() {
  processes_.clear();
  std::set<std::pair<InstanceKey, uint32_t>> taken;
  const RetiredProcesses& retired = retired_.processes();
  for (const Known& known : known_) {
    if (!known.instance) {
      continue;
    }
    const SegmentIdentity& identity = known.reader->identity();
    const auto& header = known.reader->header();
    taken.emplace(*known.instance, known.ordinal);
    if (IsOwn(known)) {
      continue;
    }
    processes_.push_back({.identity = ExposedIdentity(identity, merger_->identity()),
                          .ordinal = known.ordinal,
                          .predecessors = retired.EndedOn(*known.instance, known.ordinal),
                          .alive = known.alive,
                          .pid = header.pid,
                          .pid_namespace = header.pid_namespace,
                          .start_ticks = header.start_ticks,
                          .run_id = identity.run_id,
                          .restart_count = identity.restart_count,
                          .library_version = known.reader->writer().library_version,
                          .last_change = known.reader->last_change()});
  }
  for (const auto& [key, instance] : retired.instances()) {
    if (!retired.Shown(key, now_)) {
      continue;
    }
    for (const auto& [ordinal, place] : instance.places) {
      if (!taken.contains({key, ordinal})) {
        const SegmentIdentity identity{.role = key.first, .replica = key.second};
        processes_.push_back({.identity = ExposedIdentity(identity, merger_->identity()),
                              .ordinal = ordinal,
                              .predecessors = place.ended,
                              .alive = false,
                              .pid = place.pid,
                              .pid_namespace = place.pid_namespace,
                              .start_ticks = place.start_ticks,
                              .run_id = options_.run_id,
                              .restart_count = place.restart_count,
                              .last_change = place.last_change});
      }
    }
  }
}

void SegmentSource::SetLimits(const SeriesLimits& limits, uint64_t max_segment_bytes, std::chrono::milliseconds gauge_ttl,
                              bool hide_left) {
  options_.max_segment_bytes = max_segment_bytes;
  merger_->SetLimits(limits);
  retired_.processes().SetOptions({gauge_ttl, hide_left, limits});
}

void SegmentSource::SetNaming(std::shared_ptr<const Naming> naming) {
  merger_->SetNaming(*naming);
  naming_ = std::move(naming);
}

bool SegmentSource::OfOurRun(const SegmentReader& reader) const {
  const std::string& run_id = reader.identity().run_id;
  return options_.run_id.empty() || run_id.empty() || run_id == options_.run_id;
}

}  // namespace persia::agent
