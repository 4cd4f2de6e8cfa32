#include "ledger/retired_codec.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "files/bytes.h"
#include "ledger/segment_codec.h"

namespace persia::agent {

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

}  // namespace persia::agent
