#include "ledger/ledger_records.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/bytes.h"
#include "ledger/ledger.h"

namespace persia::agent {

namespace segment = persia::metrics::segment;
using segment::Kind;

std::chrono::steady_clock::time_point SteadyTime(std::chrono::system_clock::time_point wall, const CollectTime& now) {
  return now.steady - std::max(std::chrono::system_clock::duration(0), now.wall - wall);
}

bool IsGood(const SegmentFamily& family) {
  return family.kind >= Kind::kCounter && family.kind <= Kind::kNativeHistogram && family.policy <= GaugePolicy::kEach &&
         GoodBounds(family.kind, family.bounds) && family.bounds.size() <= (HasBounds(family.kind) ? segment::kMaxBounds : 0);
}

bool AreLabels(std::string_view bytes, uint32_t count) {
  ByteReader reader(bytes);
  for (uint64_t i = 0; i < 2 * uint64_t{count} && reader.ok(); ++i) reader.String();
  return reader.done();
}

// Without the steady time at which it expires.
template <class Archive>
void Fields(Archive& archive, EndedValue& value) {
  archive(value.value, value.processes, value.ended);
}

template <class Archive>
void Fields(Archive& archive, LastEnd& last) {
  archive(last.process, last.exit, last.born, last.ended);
}

// Without the steady time at which it was seen.
template <class Archive>
void Fields(Archive& archive, RetiredInstance& instance) {
  archive(instance.last_seen_wall, instance.last_ends, instance.exits);
}

namespace {

namespace segment = persia::metrics::segment;
using segment::Kind;

// A series of a group, without its values.
struct GroupSeries {
  uint32_t family = 0;
  uint32_t ordinal = 0;
  uint64_t birth_unix_ns = 0;
  uint32_t label_count = 0;
  std::string_view labels;

  template <class Archive>
  friend void Fields(Archive& archive, GroupSeries& series) {
    archive(series.family, series.ordinal, series.birth_unix_ns, series.label_count, series.labels);
  }
};

std::vector<EndedValue> Kept(const RetiredGroup& group, size_t number, const CollectTime& now) {
  std::vector<EndedValue> kept;
  std::ranges::copy_if(group.ValuesOf(number), std::back_inserter(kept),
                       [&](const EndedValue& value) { return value.expires > now.steady; });
  return kept;
}

// False: the series is malformed.
bool ReadSeries(ByteReader& reader, RetiredGroup& group, size_t families, const RetiredProcesses& processes,
                const CollectTime& now) {
  GroupSeries series;
  reader(series);
  if (!reader.ok() || series.family >= families || !AreLabels(series.labels, series.label_count)) return false;
  const size_t number = group.series_count();
  const bool is_new = group.FindOrAddSeries(series.family, series.ordinal, series.labels, series.label_count,
                                            series.birth_unix_ns, true) == number;
  if (!is_new) return false;
  const Kind kind = group.family(series.family).kind;
  SeriesValues values(kind, group.series(number).record.cells);
  std::vector<EndedValue> ended;
  if (HasGauge(kind)) {
    values.common.reset();
    reader(ended);
  }
  reader(values);
  if (!reader.ok()) return false;
  group.Restore(number, values);
  for (EndedValue& value : ended) {
    value.expires = SteadyTime(value.ended, now) + processes.options().gauge_ttl;
    if (std::bit_cast<uint64_t>(value.value) != segment::kUnset) group.AddGaugeValue(number, value);
  }
  return true;
}

}  // namespace

std::string EncodeInstance(const RankId& rank, const RetiredInstance& instance) { return Encode(rank, instance); }

bool DecodeInstance(std::string_view bytes, RetiredProcesses& processes, const CollectTime& now) {
  RankId rank;
  RetiredInstance instance;
  if (!Decode(bytes, rank, instance)) return false;
  instance.last_seen = SteadyTime(instance.last_seen_wall, now);
  processes.Restore(rank, std::move(instance));
  return true;
}

std::string EncodeGroup(const RetiredGroup& group, const CollectTime& now) {
  const Measurements input = group.Input();
  ByteWriter writer;
  writer(group.identity(), input.birth_unix_ns, input.values->dropped, static_cast<uint32_t>(input.families.size()));
  for (size_t i = 0; i < input.families.size(); ++i) writer(input.families[i], input.family_ages[i]);
  uint32_t count = 0;
  ByteWriter all_series;
  for (size_t i = 0; i < input.series.size(); ++i) {
    const SegmentSeriesRecord& record = input.series[i].record;
    const Kind kind = input.families[record.family].kind;
    const std::vector<EndedValue> ended = HasGauge(kind) ? Kept(group, i, now) : std::vector<EndedValue>();
    if (kind == Kind::kGauge && ended.empty()) continue;
    SeriesValues values(input, i);
    all_series(GroupSeries{record.family, input.OrdinalOf(i), input.BirthOf(i), record.labels, group.LabelsOf(i)});
    if (HasGauge(kind)) {
      values.common.reset();
      all_series(ended);
    }
    all_series(values);
    ++count;
  }
  writer(count);
  return std::move(writer).Take() + std::move(all_series).Take();
}

bool DecodeGroup(std::string_view bytes, RetiredProcesses& processes, const CollectTime& now) {
  ByteReader reader(bytes);
  SegmentIdentity identity;
  reader(identity);
  const size_t groups = processes.groups().size();
  if (!reader.ok()) return false;
  RetiredGroup& group = processes.FindOrAddGroup(identity);
  if (processes.groups().size() == groups) return false;  // it occurs twice
  group.UpdateIdentity(identity, reader.U64());
  for (uint64_t& dropped : std::span(group.dropped(), std::size(SegmentValues{}.dropped))) reader(dropped);
  const uint32_t families = reader.Count(1);
  for (uint32_t i = 0; i < families; ++i) {
    SegmentFamily family;
    FamilyAge age;
    reader(family, age);
    if (!reader.ok() || !family.known || group.FindOrAddFamily(family, std::move(age)) != i) return false;
  }
  for (uint32_t left = reader.Count(1); left > 0; --left)
    if (!ReadSeries(reader, group, families, processes, now)) return false;
  return reader.done();
}

// The part of Ledger that reads the state, and writes the whole state.
namespace {

constexpr std::chrono::seconds kLargeRetry(60);
constexpr char kMissing[] = "; the counts of processes that ended before now are missing";

std::string RunOf(const JournalContent& content) {
  return content.records.empty() ? "" : std::string(ByteReader(content.records.front().payload).String());
}

}  // namespace

Result<std::string> RunOfState(JournalFile& file) {
  return ForeignShare().Charge(
      file.path(),
      [&]() -> Result<std::string> {
        std::string problem;
        const auto content = ReadJournal(file, kStateFormat, /*look=*/true, problem);
        if (!content.ok()) return Error{content.error()};
        return RunOf(content.value());
      });
}

void Ledger::Load(const CollectTime& now) {
  if (now.steady < load_after_) return;
  loaded_ = true;
  if (options_.file == nullptr) return;
  std::string problem;
  bool fits = false;
  const auto load = [&] {
    const Status loaded = Read(now, problem);
    fits = true;
    return loaded;
  };
  if (const Status read = memory_.Charge(options_.file->path(), load); !read.ok()) {
    Discard();
    // Of another run it is removed in any case.
    loaded_ = !fits && options_.new_run && !options_.read_only && options_.file->Remove().ok();
    if (!loaded_) diagnostics_.Report("state", read.error() + kMissing + " until it can be read");
    if (!fits) load_after_ = now.steady + kLargeRetry;  // it takes a second
  }
  if (!Retires()) return;
  StartWriter(kReadWrite, /*is_written=*/problem.empty());  // no other file has the records read from a damaged one
}

Status Ledger::Read(const CollectTime& now, std::string& problem) {
  const auto content = ReadJournal(*options_.file, kStateFormat, /*look=*/options_.read_only, problem);
  if (!content.ok()) return Error{content.error()};
  if (!problem.empty()) diagnostics_.Report("state", problem + kMissing);
  const bool exists = !content.value().records.empty();
  const bool of_run = exists && !options_.new_run && RunOf(content.value()) == options_.run_id;
  if (exists && !of_run && !options_.read_only) static_cast<void>(options_.file->Remove());  // else the first save replaces it
  if (of_run && !ReadRecords(content.value(), now)) {
    std::string message;
    if (options_.read_only)
      message = options_.file->path() + " cannot be used: a record is malformed";
    else if (!options_.file->SetAside("a record is malformed", message))
      return Error{message};
    diagnostics_.Report("state", message + kMissing);
  }
  return Done{};
}

// A damaged record may have been applied in part.
void Ledger::Discard() {
  processes_ = RetiredProcesses(processes_.options());
  living_.clear();
  folded_.clear();
  health_.clear();
  goodput_.clear();
}

bool Ledger::ReadRecords(const JournalContent& content, const CollectTime& now) {
  for (const JournalRecord& record : content.records) {
    if (!ReadRecord(record, now)) {
      Discard();
      return false;
    }
  }
  for (auto& [id, process] : living_) process.orphan = true;
  return true;
}

bool Ledger::ReadRecord(const JournalRecord& record, const CollectTime& now) {
  const std::string_view payload = record.payload;
  std::string id;
  switch (static_cast<StateRecord>(record.tag)) {
    case StateRecord::kRun: {
      uint64_t folded = 0;
      const bool is_good = Decode(payload, id, folded);
      processes_.RestoreCount(folded);
      return is_good;
    }
    case StateRecord::kInstance:
      return DecodeInstance(payload, processes_, now);
    case StateRecord::kGroup:
      return DecodeGroup(payload, processes_, now);
    case StateRecord::kFolded:
      if (!Decode(payload, id)) return false;
      folded_.emplace(id, kReadWrite);
      return true;
    case StateRecord::kOrdinal: {
      ProcessPlace place;
      const bool is_good = Decode(payload, id, place);
      living_[id].place = std::move(place);
      return is_good;
    }
    case StateRecord::kValues: {
      id = ByteReader(payload).String();
      Unfolded& process = living_[id];
      process.has_values = true;
      return !id.empty() && process.values.Apply(payload);
    }
    case StateRecord::kFold:
      return ReadFold(payload, now);
    case StateRecord::kForget:
      if (!Decode(payload, id)) return false;
      folded_.erase(id);
      return true;
    case StateRecord::kForgetInstance: {
      RankId instance;
      const bool is_good = Decode(payload, instance);
      processes_.ForgetInstance(instance);
      return is_good;
    }
    case StateRecord::kHealth:
      return Decode(payload, health_);
    case StateRecord::kGoodput:
      return Decode(payload, goodput_);
    case StateRecord::kSeen: {
      const bool is_good = Decode(payload, id, new_seen_);
      seen_ = new_seen_ = id == options_.boot_id ? new_seen_ : 0;
      return is_good;
    }
  }
  return false;
}

bool Ledger::ReadFold(std::string_view payload, const CollectTime& now) {
  std::string id;
  std::chrono::system_clock::time_point wall;
  std::string exit;
  RetiredProcesses::FoldOutcome outcome;
  if (!Decode(payload, id, wall, exit, outcome.group, outcome.left_out)) return false;
  if (replayed_.tick == 0 || wall != replayed_.wall) replayed_ = {replayed_.tick + 1, SteadyTime(wall, now), wall};
  const auto process = living_.extract(id);
  if (!process || !process.mapped().has_values) return false;
  const SavedProcess& values = process.mapped().values;
  processes_.RepeatFold(values.Input(), values.process(), replayed_, outcome, exit);
  folded_.emplace(id, kReadWrite);
  return true;
}

std::string Ledger::Checkpoint(const CollectTime& now) const {
  std::string records;
  const auto add = [&](StateRecord record, std::string_view payload) {
    AddRecord(records, static_cast<uint16_t>(record), payload);
  };
  add(StateRecord::kRun, Encode(options_.run_id, processes_.processes()));
  // Before the sums, so that a checkpoint that is cut off never has sums without the ids of the segments in them.
  for (const auto& [id, write] : folded_) add(StateRecord::kFolded, Encode(id));
  for (const auto& [key, instance] : processes_.instances()) add(StateRecord::kInstance, EncodeInstance(key, instance));
  for (const RetiredGroup& group : processes_.groups()) add(StateRecord::kGroup, EncodeGroup(group, now));
  for (const auto& [id, process] : living_) {
    if (process.place) add(StateRecord::kOrdinal, Encode(id, *process.place));
    if (process.has_values) add(StateRecord::kValues, process.values.Whole());
  }
  if (!health_.empty()) add(StateRecord::kHealth, Encode(health_));
  if (!goodput_.empty()) add(StateRecord::kGoodput, Encode(goodput_));
  if (new_seen_ != 0) add(StateRecord::kSeen, Encode(options_.boot_id, new_seen_));
  return records;
}

}  // namespace persia::agent
