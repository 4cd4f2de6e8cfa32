#include "ledger/retired_processes.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "base/foreign_memory.h"
#include "files/bytes.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Kind;
using segment::kUnset;

// The keys of an instance's groups begin with the one without labels.
std::string GroupKey(const RankId& instance, const Labels& labels = {}) {
  ByteWriter key;
  key(instance);
  for (const auto& [name, value] : labels) {
    key.String(name);
    key.String(value);
  }
  return std::move(key).Take();
}

std::chrono::system_clock::time_point UnixTime(uint64_t unix_ns) {
  using std::chrono::system_clock;
  return system_clock::time_point(
      std::chrono::duration_cast<system_clock::duration>(std::chrono::nanoseconds(static_cast<int64_t>(unix_ns))));
}

void AddDropped(RetiredGroup& to, std::span<const uint64_t> dropped) {
  for (size_t reason = 0; reason < dropped.size(); ++reason) to.dropped()[reason] += dropped[reason];
}

bool LabelsFit(std::span<const std::byte> records, const SegmentSeriesRecord& record, size_t value_bytes) {
  bool fit = true;
  VisitLabels(records, record, [&](std::string_view, std::string_view value) { fit = fit && value.size() <= value_bytes; });
  return fit;
}

}  // namespace

RetiredGroup& RetiredProcesses::FindOrAddGroup(const SegmentIdentity& identity) {
  const auto [found, added] = by_key_.try_emplace(GroupKey(identity.rank(), identity.labels));
  if (added) found->second = groups_.emplace(groups_.end(), identity, next_number_++);
  return *found->second;
}

std::map<std::string, std::list<RetiredGroup>::iterator>::iterator RetiredProcesses::AnyGroup(const RankId& instance) {
  const std::string key = GroupKey(instance);
  const auto found = by_key_.lower_bound(key);
  return found != by_key_.end() && found->first.starts_with(key) ? found : by_key_.end();
}

bool RetiredProcesses::MayAdd(const RankId& instance) {
  return series_of_[instance] < options_.limits.series_of_instance && series_ < options_.limits.series &&
         bytes_ < ForeignShare::Limit() / 2;
}

void RetiredProcesses::CountSeries(const CollectTime& now) {
  counted_at_ = now.steady;
  series_of_.clear();
  series_ = 0;
  bytes_ = 0;
  for (const RetiredGroup& group : groups_) {
    bytes_ += group.bytes();
    const RankId instance = group.identity().rank();
    series_of_[instance] += group.series_count();
    series_ += IsShown(instance, now) ? group.series_count() : 0;
  }
}

RetiredProcesses::FoldOutcome RetiredProcesses::Fold(const Measurements& ended, LastProcess process, const CollectTime& now,
                                                     std::string_view exit) {
  if (counted_at_ != now.steady) CountSeries(now);
  const RankId instance = ended.identity->rank();
  if (instances_.contains(instance) && !IsShown(instance, now)) series_ += series_of_[instance];  // it is exposed again
  // An instance has a group at least, for its dropped counts.
  const bool known = by_key_.contains(GroupKey(instance, ended.identity->labels));
  const bool group = known || MayAdd(instance) || AnyGroup(instance) == by_key_.end();
  return FoldAll(ended, process, exit, now, group, [&](size_t number) {
    const bool may_add =
        MayAdd(instance) && LabelsFit(ended.records, ended.series[number].record, options_.limits.label_value_bytes);
    return may_add ? Admission::kAdd : Admission::kIfKnown;
  });
}

void RetiredProcesses::RepeatFold(const Measurements& ended, LastProcess process, const CollectTime& now,
                                  const FoldOutcome& outcome, std::string_view exit) {
  const std::set<uint32_t> left_out(outcome.left_out.begin(), outcome.left_out.end());
  const bool group = outcome.group || AnyGroup(ended.identity->rank()) == by_key_.end();
  FoldAll(ended, process, exit, now, group, [&](size_t number) {
    return left_out.contains(static_cast<uint32_t>(number)) ? Admission::kLeaveOut : Admission::kAdd;
  });
}

template <class Admit>
RetiredProcesses::FoldOutcome RetiredProcesses::FoldAll(const Measurements& ended, LastProcess process, std::string_view exit,
                                                        const CollectTime& now, bool has_group, Admit admit) {
  const RankId instance = ended.identity->rank();
  MarkSeen(instance, now);
  FoldOutcome outcome{.group = has_group};
  if (has_group) {
    RetiredGroup& group = FindOrAddGroup(*ended.identity);
    group.UpdateIdentity(*ended.identity, ended.birth_unix_ns);
    outcome.left_out = FoldAllSeries(group, ended, now, admit);
    series_refused_ += outcome.left_out.size();
    AddDropped(group, ended.values->dropped);
  } else {
    series_refused_ += ended.series.size();
    AddDropped(*AnyGroup(instance)->second, ended.values->dropped);
  }
  RetiredInstance& of = instances_[instance];
  LastEnd& last = of.last_ends[ended.ordinal];
  process.ended = last.process.ended + 1;
  last = {process, std::string(exit), UnixTime(ended.birth_unix_ns), now.wall};
  ++of.exits[std::string(exit)];
  ++processes_;
  return outcome;
}

const RetiredInstance* RetiredProcesses::SetExit(const ProcessPlace& place, const ProcessId& process, std::string_view exit) {
  const auto found = instances_.find(place.rank);
  if (found == instances_.end()) return nullptr;
  RetiredInstance& of = found->second;
  const auto unknown = of.exits.find(std::string(kUnknownEnd));
  if (unknown == of.exits.end()) return nullptr;
  if (--unknown->second == 0) of.exits.erase(unknown);
  ++of.exits[std::string(exit)];
  const auto last = of.last_ends.find(place.ordinal);
  if (last != of.last_ends.end() && last->second.process.id == process) last->second.exit = exit;
  return &of;
}

template <class Admit>
std::vector<uint32_t> RetiredProcesses::FoldAllSeries(RetiredGroup& group, const Measurements& ended, const CollectTime& now,
                                                      Admit admit) {
  // Known families update their age; others are added with their first series within the limits.
  std::vector<std::optional<uint32_t>> families(ended.families.size());
  for (size_t i = 0; i < ended.families.size(); ++i)
    if (ended.families[i].known && group.HasFamily(ended.families[i]))
      families[i] = group.FindOrAddFamily(ended.families[i], ended.AgeOf(i));
  std::vector<uint32_t> left_out;
  for (size_t i = 0; i < ended.series.size(); ++i) {
    const uint32_t family = ended.series[i].record.family;
    if (!ended.families[family].known) continue;
    const Admission admission = admit(i);
    const bool adds = admission == Admission::kAdd;
    if (!families[family] && adds) families[family] = group.FindOrAddFamily(ended.families[family], ended.AgeOf(family));
    if (admission == Admission::kLeaveOut || !families[family] || !FoldSeries(group, *families[family], ended, i, adds, now))
      left_out.push_back(static_cast<uint32_t>(i));
  }
  return left_out;
}

bool RetiredProcesses::FoldSeries(RetiredGroup& group, uint32_t family, const Measurements& ended, size_t number, bool may_add,
                                  const CollectTime& now) {
  const SegmentSeries& from = ended.series[number];
  const Kind kind = group.family(family).kind;
  const bool each = kind == Kind::kGauge && group.family(family).policy == GaugePolicy::kEach;
  const bool has_no_value = kind == Kind::kGauge && from.record.removed;
  const size_t before = group.series_count();
  const uint64_t bytes_before = group.bytes();
  const size_t to = group.FindOrAddSeries(family, each ? ended.OrdinalOf(number) : 0, LabelBytes(ended.records, from.record),
                                          from.record.labels, ended.BirthOf(number), may_add && !has_no_value);
  if (to == SIZE_MAX) return has_no_value;
  group.SetRemoved(to, from.record.removed);
  series_ += group.series_count() - before;
  bytes_ += group.bytes() - bytes_before;
  series_of_[ended.identity->rank()] += group.series_count() - before;
  if (HasGauge(kind) && !from.record.removed) FoldGauge(group, to, ended, number, now);
  if (kind == Kind::kGauge) return true;
  uint64_t* cells = group.Cells(to);
  for (uint32_t cell = 0; cell < from.record.cells; ++cell)
    if (IsWholeCell(kind, cell)) cells[cell] += ended.values->wholes[from.whole + cell];
  if (kind == Kind::kEvent) group.Common(to) = std::max(group.Common(to), ended.values->commons[from.common]);
  for (uint32_t which = 0; which < SumCount(kind); ++which) {
    terms_.clear();
    ended.values->AppendTerms(from.real + which, terms_);
    if (terms_.empty()) continue;
    group.values().AppendTerms(group.series(to).real + which, terms_);
    for (const double term : terms_) sum_.Add(term);
    sum_terms_.clear();
    sum_.MoveTo(sum_terms_);
    group.SetSum(to, which, sum_terms_);
  }
  return true;
}

void RetiredProcesses::FoldGauge(RetiredGroup& group, size_t series, const Measurements& ended, size_t number,
                                 const CollectTime& now) {
  const uint32_t from = ended.series[number].common;
  const uint64_t bits = ended.values->commons[from];
  if (bits == kUnset) return;
  group.AddGaugeValue(series,
                      {.value = std::bit_cast<double>(bits), .expires = now.steady + options_.gauge_ttl, .ended = now.wall},
                      {.ended_tick = now.tick, .changed_tick = ended.changed_at[from], .birth_unix_ns = ended.birth_unix_ns});
}

void RetiredProcesses::MarkSeen(const RankId& instance, const CollectTime& now) {
  RetiredInstance& known = instances_[instance];
  known.last_seen = now.steady;
  known.last_seen_wall = now.wall;
}

void RetiredProcesses::SetLiving(LivingJob living, const CollectTime& now) {
  living_ = std::move(living);
  if (!living_.is_over)
    over_since_.reset();
  else if (!over_since_)
    over_since_ = now.steady;
}

bool RetiredProcesses::IsShown(const RankId& instance, const CollectTime& now) const {
  const auto found = instances_.find(instance);
  return !options_.hide_ended || found == instances_.end() || ExpiryTime(now) < found->second.last_seen + options_.gauge_ttl ||
         missed_.contains(instance);
}

const LastEnd* RetiredProcesses::LastEndOf(const ProcessPlace& place) const {
  const auto found = instances_.find(place.rank);
  if (found == instances_.end()) return nullptr;
  const auto last = found->second.last_ends.find(place.ordinal);
  return last == found->second.last_ends.end() ? nullptr : &last->second;
}

bool RetiredProcesses::HasDied(const ProcessPlace& place) const {
  if (place.ordinal != 0 || living_.is_over) return false;
  const LastEnd* const last = LastEndOf(place);
  if (last == nullptr || IsCleanExit(last->exit)) return false;
  if (living_.interrupted_at && last->ended >= *living_.interrupted_at) return false;
  // One that lived when this agent was there runs beside the command, even if it has begun before it.
  const bool lived_here = began_at_ && instances_.at(place.rank).last_seen > *began_at_;
  const bool is_of_former_attempt = living_.began_ticks && !lived_here &&
                                    (last->born < living_.booted || last->process.id.start_ticks < *living_.began_ticks);
  if (is_of_former_attempt) return false;
  const auto restarted = restart_counts_.find(place.rank.role);
  return restarted == restart_counts_.end() || restarted->second <= last->process.restart_count;
}

void RetiredProcesses::FindMissed() {
  if (living_.is_over) return;  // those that were missed at the end stay exposed
  restart_counts_ = living_.restart_counts;
  for (const auto& [key, instance] : instances_) {
    const LastEnd* const first = LastEndOf({key, 0});
    if (first == nullptr) continue;
    uint32_t& highest = restart_counts_[key.role];
    highest = std::max(highest, first->process.restart_count);
  }
  std::vector<std::pair<std::chrono::steady_clock::time_point, RankId>> missed;
  for (const auto& [key, instance] : instances_)
    if (!living_.instances.contains(key) && HasDied({key, 0})) missed.emplace_back(instance.last_seen, key);
  std::ranges::sort(missed, std::ranges::greater());
  if (missed.size() > kMaxMissed) missed.resize(kMaxMissed);
  missed_.clear();
  for (auto& [last_seen, key] : missed) missed_.insert(std::move(key));
}

std::vector<Measurements> RetiredProcesses::Inputs(const CollectTime& now) {
  for (RetiredGroup& group : groups_) group.ExpireGauges(ExpiryTime(now));
  RemoveEmptyGroups();
  FindMissed();
  CountSeries(now);
  ForgetEndedInstances(now);
  std::vector<Measurements> inputs;
  for (const RetiredGroup& group : groups_)
    if (IsShown(group.identity().rank(), now)) inputs.push_back(group.Input());
  return inputs;
}

// The dropped counts belong to the instance, with any labels of the process: add them to another group of it.
void RetiredProcesses::RemoveEmptyGroups() {
  for (auto group = groups_.begin(); group != groups_.end();) {
    const auto next = std::next(group);
    if (group->series_count() == 0) {
      const RankId instance = group->identity().rank();
      const auto own = by_key_.extract(GroupKey(instance, group->identity().labels));
      if (const auto other = AnyGroup(instance); other != by_key_.end()) {
        AddDropped(*other->second, group->values().dropped);
        groups_.erase(group);
      } else {
        by_key_.emplace(own.key(), own.mapped());
      }
    }
    group = next;
  }
}

void RetiredProcesses::ForgetEndedInstances(const CollectTime& now) {
  // An agent that just started may not have found all living processes.
  if (!began_at_) began_at_ = now.steady;
  if (now.steady < *began_at_ + options_.gauge_ttl) return;
  size_t hidden = 0;
  std::vector<std::pair<std::chrono::steady_clock::time_point, RankId>> ended;
  for (const auto& [instance, state] : instances_) {
    if (state.last_seen == now.steady) continue;
    ended.emplace_back(state.last_seen, instance);
    hidden += IsShown(instance, now) ? 0 : series_of_[instance];
  }
  // Below the limit of MayAdd, so that hidden instances make room before a series is refused for it.
  const auto too_many_hidden = [&] { return hidden > options_.limits.series || bytes_ > ForeignShare::Limit() / 8 * 3; };
  if (!too_many_hidden() && instances_.size() <= kMaxInstances) return;
  std::sort(ended.begin(), ended.end());
  for (const auto& [last_seen, instance] : ended) {
    const bool shown = IsShown(instance, now);
    if ((shown || !too_many_hidden()) && instances_.size() <= kMaxInstances) break;
    (shown ? series_ : hidden) -= series_of_[instance];
    series_refused_ += series_of_[instance];
    ForgetInstance(instance);
    forgotten_.push_back(instance);
  }
}

void RetiredProcesses::ForgetInstance(const RankId& instance) {
  series_of_.erase(instance);
  for (auto group = AnyGroup(instance); group != by_key_.end(); group = AnyGroup(instance)) {
    bytes_ -= group->second->bytes();
    groups_.erase(group->second);
    by_key_.erase(group);
  }
  instances_.erase(instance);
  missed_.erase(instance);
}

}  // namespace persia::agent
