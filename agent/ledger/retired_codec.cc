// The payload, in the terms of files/bytes.h. A list is its count (U32), then its entries; a time is milliseconds since 1970
// (U64).
//
//   state     run id (String), folded: list of ids (String), ordinals of living processes: list of (id (String), ordinal
//   (U32)),
//             values of living processes: list of (id (String), a state of that process alone (String)),
//             processes folded in all (U64), list of instances, list of groups
//   instance  role (String), replica (U32), last seen (time), list of last processes
//   last process
//             ordinal (U32), ended (U64), pid (U32), pid namespace (U64), start ticks (U64), restart count (U32),
//             last change (time)
//   group     identity: job, run id, role (String), replica, restart count (U32), list of labels (name, value: String);
//             birth (U64), dropped counts (16 x U64), list of families, list of series
//   family    kind, policy (U8), list of bounds (F64), group, name, help, unit (String), age: birth (U64), id (String),
//             number (U64)
//   series    family (U32), ordinal (U32), birth of the first process that had it (U64; not in version 1), number of labels
//             (U32), labels as a segment's record has them (String); then
//             of a gauge, and of a stream for its last value: list of values of ended processes; a gauge without has no series
//             of others: the whole cells (U64 each), the terms of the sum of doubles: list (F64), of a stream two such lists;
//             of an event also the last timestamp (U64)
//   value of ended processes
//             value (F64), number of processes (U32), when the first of them ended (time)
//
// Version 1 has one such value instead of a list, NaN as of an unset gauge for none, with the number (U64) after the time.
#include "ledger/retired_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "files/bytes.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Kind;
using segment::kUnset;
using std::chrono::milliseconds;

constexpr size_t kDroppedReasons = std::size(SegmentValues{}.dropped);

uint64_t Milliseconds(std::chrono::system_clock::time_point time) {
  return static_cast<uint64_t>(std::max<int64_t>(0, std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count()));
}

std::chrono::system_clock::time_point WallTime(uint64_t ms) {
  constexpr uint64_t kEndOfTime = 1ULL << 43;  // the year 2248
  return std::chrono::system_clock::time_point(milliseconds(static_cast<int64_t>(std::min(ms, kEndOfTime))));
}

// The steady time of a wall time; `now` if the wall time is in the future, as after the clock was set back.
std::chrono::steady_clock::time_point SteadyTime(std::chrono::system_clock::time_point wall, const CollectTime& now) {
  return now.steady - std::max(std::chrono::system_clock::duration(0), now.wall - wall);
}

void WriteInstance(const InstanceKey& key, const RetiredInstance& instance, ByteWriter& writer) {
  writer.String(key.first);
  writer.U32(static_cast<uint32_t>(key.second));
  writer.U64(Milliseconds(instance.last_seen_wall));
  writer.U32(static_cast<uint32_t>(instance.last_processes.size()));
  for (const auto& [ordinal, last] : instance.last_processes) {
    writer.U32(ordinal);
    writer.U64(last.ended);
    writer.U32(last.pid);
    writer.U64(last.pid_namespace);
    writer.U64(last.start_ticks);
    writer.U32(last.restart_count);
    writer.U64(Milliseconds(last.last_change));
  }
}

void ReadInstance(ByteReader& reader, RetiredProcesses& processes, const CollectTime& now) {
  InstanceKey key;
  key.first = reader.String();
  key.second = static_cast<int32_t>(reader.U32());
  RetiredInstance instance;
  instance.last_seen_wall = WallTime(reader.U64());
  instance.last_seen = SteadyTime(instance.last_seen_wall, now);
  constexpr size_t kLastProcessBytes = 44;
  for (uint32_t left = reader.Count(kLastProcessBytes); left > 0 && reader.ok(); --left) {
    LastProcess& last = instance.last_processes[reader.U32()];
    last.ended = reader.U64();
    last.pid = reader.U32();
    last.pid_namespace = reader.U64();
    last.start_ticks = reader.U64();
    last.restart_count = reader.U32();
    last.last_change = WallTime(reader.U64());
  }
  processes.Restore(key, std::move(instance));
}

void WriteIdentity(const SegmentIdentity& identity, ByteWriter& writer) {
  writer.String(identity.job);
  writer.String(identity.run_id);
  writer.String(identity.role);
  writer.U32(static_cast<uint32_t>(identity.replica));
  writer.U32(identity.restart_count);
  writer.U32(static_cast<uint32_t>(identity.labels.size()));
  for (const auto& [name, value] : identity.labels) {
    writer.String(name);
    writer.String(value);
  }
}

SegmentIdentity ReadIdentity(ByteReader& reader) {
  SegmentIdentity identity;
  identity.job = reader.String();
  identity.run_id = reader.String();
  identity.role = reader.String();
  identity.replica = static_cast<int32_t>(reader.U32());
  identity.restart_count = reader.U32();
  for (uint32_t left = reader.Count(8); left > 0 && reader.ok(); --left) {
    std::string name(reader.String());
    identity.labels.emplace_back(std::move(name), reader.String());
  }
  return identity;
}

void WriteFamily(const SegmentFamily& family, const FamilyAge& age, ByteWriter& writer) {
  writer.U8(static_cast<uint8_t>(family.kind));
  writer.U8(static_cast<uint8_t>(family.policy));
  writer.U32(static_cast<uint32_t>(family.bounds.size()));
  for (const double bound : family.bounds) {
    writer.F64(bound);
  }
  for (const std::string* text : {&family.group, &family.name, &family.help, &family.unit}) {
    writer.String(*text);
  }
  writer.U64(age.birth_unix_ns);
  writer.String(age.segment_id);
  writer.U64(age.number);
}

// Nothing: no segment can have such a family.
std::optional<SegmentFamily> ReadFamily(ByteReader& reader, FamilyAge& age) {
  SegmentFamily family;
  family.known = true;
  family.kind = static_cast<Kind>(reader.U8());
  const uint8_t policy = reader.U8();
  family.policy = static_cast<GaugePolicy>(policy);
  for (uint32_t left = reader.Count(sizeof(double)); left > 0 && reader.ok(); --left) {
    family.bounds.push_back(reader.F64());
  }
  for (std::string* text : {&family.group, &family.name, &family.help, &family.unit}) {
    *text = reader.String();
  }
  age.birth_unix_ns = reader.U64();
  age.segment_id = reader.String();
  age.number = reader.U64();
  const bool known_kind = family.kind >= Kind::kCounter && family.kind <= Kind::kEvent;
  const bool has_bounds = family.kind == Kind::kHistogram || family.kind == Kind::kEvent;
  const bool finite =
      std::all_of(family.bounds.begin(), family.bounds.end(), [](double bound) { return std::isfinite(bound); });
  const bool increasing = std::adjacent_find(family.bounds.begin(), family.bounds.end(),
                                             [](double a, double b) { return a >= b; }) == family.bounds.end();
  if (!known_kind || policy > static_cast<uint8_t>(GaugePolicy::kEach) || !finite || !increasing ||
      family.bounds.size() > (has_bounds ? segment::kMaxBounds : 0)) {
    return std::nullopt;
  }
  return family;
}

bool IsWritten(const RetiredGroup& group, size_t number, const CollectTime& now) {
  const auto kept = [&](const EndedValue& value) { return value.expires > now.steady; };
  return group.family(group.series(number).record.family).kind != Kind::kGauge ||
         std::ranges::any_of(group.ValuesOf(number), kept);
}

void WriteEndedValues(std::span<const EndedValue> values, const CollectTime& now, ByteWriter& writer) {
  const auto expired = [&](const EndedValue& value) { return value.expires <= now.steady; };
  writer.U32(static_cast<uint32_t>(values.size() - std::ranges::count_if(values, expired)));
  for (const EndedValue& value : values) {
    if (expired(value)) continue;
    writer.F64(value.value);
    writer.U32(value.processes);
    writer.U64(Milliseconds(value.ended));
  }
}

void ReadEndedValues(ByteReader& reader, uint32_t version, RetiredGroup& group, size_t series, milliseconds gauge_ttl,
                     const CollectTime& now) {
  constexpr size_t kEndedValueBytes = 20;
  for (uint32_t left = version == 1 ? 1 : reader.Count(kEndedValueBytes); left > 0 && reader.ok(); --left) {
    EndedValue value{.value = reader.F64()};
    if (version != 1) value.processes = reader.U32();
    value.ended = WallTime(reader.U64());
    if (version == 1) value.processes = static_cast<uint32_t>(reader.U64());
    value.expires = SteadyTime(value.ended, now) + gauge_ttl;
    if (std::bit_cast<uint64_t>(value.value) != kUnset) {
      group.AddGaugeValue(series, value);
    }
  }
}

void WriteSeries(const RetiredGroup& group, size_t number, const CollectTime& now, ByteWriter& writer) {
  const Measurements input = group.Input();
  const SegmentSeries& series = group.series(number);
  const Kind kind = group.family(series.record.family).kind;
  writer.U32(series.record.family);
  writer.U32(input.OrdinalOf(number));
  writer.U64(input.BirthOf(number));
  writer.U32(series.record.labels);
  writer.String(group.LabelsOf(number));
  if (HasGauge(kind)) WriteEndedValues(group.ValuesOf(number), now, writer);
  if (kind == Kind::kGauge) return;
  for (uint32_t cell = 0; cell < series.record.cells; ++cell) {
    if (IsWholeCell(kind, cell)) {
      writer.U64(input.values->wholes[series.whole + cell]);
    }
  }
  for (uint32_t which = 0; which < SumCount(kind); ++which) {
    std::vector<double> terms;
    input.values->AppendTerms(series.real + which, terms);
    writer.U32(static_cast<uint32_t>(terms.size()));
    for (const double term : terms) {
      writer.F64(term);
    }
  }
  if (kind == Kind::kEvent) {
    writer.U64(input.values->commons[series.common]);
  }
}

// Whether the bytes are exactly `count` labels as in a segment's record.
bool AreLabels(std::string_view bytes, uint32_t count) {
  ByteReader reader(bytes);
  for (uint64_t i = 0; i < 2 * uint64_t{count} && reader.ok(); ++i) {
    reader.String();
  }
  return reader.done();
}

// False: the series is malformed.
bool ReadSeries(ByteReader& reader, uint32_t version, size_t families, RetiredGroup& group, milliseconds gauge_ttl,
                const CollectTime& now) {
  const uint32_t family = reader.U32();
  const uint32_t ordinal = reader.U32();
  const uint64_t birth_unix_ns = version == 1 ? 0 : reader.U64();
  const uint32_t label_count = reader.U32();
  const std::string_view labels = reader.String();
  if (!reader.ok() || family >= families || !AreLabels(labels, label_count)) return false;
  const size_t before = group.series_count();
  const size_t number = group.FindOrAddSeries(family, ordinal, labels, label_count, birth_unix_ns, true);
  if (group.series_count() == before) return false;  // a duplicate
  const Kind kind = group.family(family).kind;
  if (HasGauge(kind)) ReadEndedValues(reader, version, group, number, gauge_ttl, now);
  if (kind == Kind::kGauge) return reader.ok();
  for (uint32_t cell = 0; cell < group.series(number).record.cells; ++cell) {
    if (IsWholeCell(kind, cell)) {
      group.Cells(number)[cell] = reader.U64();
    }
  }
  for (uint32_t which = 0; which < SumCount(kind); ++which) {
    std::vector<double> terms;
    for (uint32_t left = reader.Count(sizeof(double)); left > 0 && reader.ok(); --left) {
      terms.push_back(reader.F64());
    }
    group.SetSum(number, which, terms);
  }
  if (kind == Kind::kEvent) {
    group.Common(number) = reader.U64();
  }
  return reader.ok();
}

void WriteGroup(const RetiredGroup& group, const CollectTime& now, ByteWriter& writer) {
  const Measurements input = group.Input();
  WriteIdentity(group.identity(), writer);
  writer.U64(input.birth_unix_ns);
  for (const uint64_t dropped : input.values->dropped) {
    writer.U64(dropped);
  }
  writer.U32(static_cast<uint32_t>(input.families.size()));
  for (size_t i = 0; i < input.families.size(); ++i) {
    WriteFamily(input.families[i], input.family_ages[i], writer);
  }
  std::vector<size_t> kept;
  for (size_t i = 0; i < group.series_count(); ++i) {
    if (IsWritten(group, i, now)) {
      kept.push_back(i);
    }
  }
  writer.U32(static_cast<uint32_t>(kept.size()));
  for (const size_t i : kept) {
    WriteSeries(group, i, now, writer);
  }
}

// Returns what is malformed; empty: nothing.
std::string ReadGroup(ByteReader& reader, uint32_t version, RetiredProcesses& processes, const CollectTime& now) {
  const size_t groups = processes.groups().size();
  const SegmentIdentity identity = ReadIdentity(reader);
  RetiredGroup& group = processes.FindOrAddGroup(identity);
  if (!reader.ok() || processes.groups().size() == groups) return "a group occurs twice";
  group.UpdateIdentity(identity, reader.U64());
  for (size_t i = 0; i < kDroppedReasons; ++i) {
    group.dropped()[i] = reader.U64();
  }
  constexpr size_t kMinFamilyBytes = 42;
  const uint32_t families = reader.Count(kMinFamilyBytes);
  for (uint32_t i = 0; i < families && reader.ok(); ++i) {
    FamilyAge age;
    const std::optional<SegmentFamily> family = ReadFamily(reader, age);
    if (!reader.ok() || !family || group.FindOrAddFamily(*family, std::move(age)) != i) {
      return "family " + std::to_string(i) + " of a group is malformed";
    }
  }
  constexpr size_t kMinSeriesBytes = 28;
  for (uint32_t left = reader.Count(kMinSeriesBytes); left > 0 && reader.ok(); --left) {
    if (!ReadSeries(reader, version, families, group, processes.options().gauge_ttl, now)) {
      return "a series of a group is malformed";
    }
  }
  return "";
}

}  // namespace

std::string EncodeRetired(const RetiredState& state, const CollectTime& now) {
  ByteWriter writer;
  writer.String(state.run_id);
  writer.U32(static_cast<uint32_t>(state.folded.size()));
  for (const std::string& id : state.folded) {
    writer.String(id);
  }
  writer.U32(static_cast<uint32_t>(state.ordinals.size()));
  for (const auto& [id, ordinal] : state.ordinals) {
    writer.String(id);
    writer.U32(ordinal);
  }
  writer.U32(static_cast<uint32_t>(state.living.size()));
  for (const auto& [id, alone] : state.living) {
    writer.String(id);
    writer.String(alone);
  }
  writer.U64(state.processes.processes());
  writer.U32(static_cast<uint32_t>(state.processes.instances().size()));
  for (const auto& [key, instance] : state.processes.instances()) {
    WriteInstance(key, instance, writer);
  }
  writer.U32(static_cast<uint32_t>(state.processes.groups().size()));
  for (const RetiredGroup& group : state.processes.groups()) {
    WriteGroup(group, now, writer);
  }
  return std::move(writer).Take();
}

Result<RetiredState> DecodeRetired(std::string_view payload, const RetiredProcesses::Options& options, const CollectTime& now,
                                   uint32_t version) {
  if (version < 1 || version > kRetiredStateVersion) {
    return Error{"its version is " + std::to_string(version) + "; this agent reads 1 to " +
                 std::to_string(kRetiredStateVersion)};
  }
  ByteReader reader(payload);
  RetiredState state{.processes = RetiredProcesses(options)};
  state.run_id = reader.String();
  for (uint32_t left = reader.Count(4); left > 0 && reader.ok(); --left) {
    state.folded.emplace(reader.String());
  }
  constexpr size_t kOrdinalBytes = 8;
  for (uint32_t left = reader.Count(kOrdinalBytes); left > 0 && reader.ok(); --left) {
    std::string id(reader.String());
    state.ordinals.emplace(std::move(id), reader.U32());
  }
  for (uint32_t left = reader.Count(2 * sizeof(uint32_t)); left > 0 && reader.ok(); --left) {
    std::string id(reader.String());
    std::string alone(reader.String());
    if (version != kRetiredStateVersion) {
      if (const auto read = DecodeRetired(alone, options, now, version); read.ok()) {
        alone = EncodeRetired(read.value(), now);
      }
    }
    state.living.emplace(std::move(id), std::move(alone));
  }
  const uint64_t processes = reader.U64();
  constexpr size_t kMinInstanceBytes = 20;
  for (uint32_t left = reader.Count(kMinInstanceBytes); left > 0 && reader.ok(); --left) {
    ReadInstance(reader, state.processes, now);
  }
  constexpr size_t kMinGroupBytes = 168;
  for (uint32_t left = reader.Count(kMinGroupBytes); left > 0 && reader.ok(); --left) {
    if (std::string malformed = ReadGroup(reader, version, state.processes, now); !malformed.empty() && reader.ok()) {
      return Error{std::move(malformed)};
    }
  }
  if (!reader.done()) {
    return Error{reader.ok() ? "it has bytes after its end" : "it is too short for its counts"};
  }
  state.processes.RestoreCount(processes);
  return state;
}

std::string RunOfRetired(std::string_view payload) { return std::string(ByteReader(payload).String()); }

}  // namespace persia::agent
