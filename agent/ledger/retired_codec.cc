#include "ledger/retired_codec.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/bytes.h"
#include "ledger/segment_codec.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Kind;
using segment::kUnset;
using std::chrono::milliseconds;

constexpr size_t kDroppedReasons = std::size(SegmentValues{}.dropped);

void WriteAge(const FamilyAge& age, ByteWriter& writer) {
  writer.U64(age.birth_unix_ns);
  writer.String(age.segment_id);
  writer.U64(age.number);
}

FamilyAge ReadAge(ByteReader& reader) {
  FamilyAge age;
  age.birth_unix_ns = reader.U64();
  age.segment_id = reader.String();
  age.number = reader.U64();
  return age;
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
    WriteTime(value.ended, writer);
  }
}

void ReadEndedValues(ByteReader& reader, uint32_t version, RetiredGroup& group, size_t series, milliseconds gauge_ttl,
                     const CollectTime& now) {
  constexpr size_t kEndedValueBytes = 20;
  for (uint32_t left = version == 1 ? 1 : reader.Count(kEndedValueBytes); left > 0 && reader.ok(); --left) {
    EndedValue value{.value = reader.F64()};
    if (version != 1) value.processes = reader.U32();
    value.ended = ReadTime(reader);
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
    WriteTerms(terms, writer);
  }
  if (kind == Kind::kEvent) {
    writer.U64(input.values->commons[series.common]);
  }
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
    group.SetSum(number, which, ReadTerms(reader));
  }
  if (kind == Kind::kEvent) {
    group.Common(number) = reader.U64();
  }
  return reader.ok();
}

}  // namespace

// The encoding: identity, the list of numbers in the group's record (U32).
std::string RemovedOf(const RetiredGroup& group, const CollectTime& now) {
  std::vector<uint32_t> numbers;
  uint32_t written = 0;
  for (size_t i = 0; i < group.series_count(); ++i) {
    if (!IsWritten(group, i, now)) continue;
    if (group.series(i).record.removed) numbers.push_back(written);
    ++written;
  }
  if (numbers.empty()) return {};
  ByteWriter writer;
  WriteIdentity(group.identity(), writer);
  WriteNumbers(numbers, writer);
  return std::move(writer).Take();
}

void WriteInstance(const InstanceKey& key, const RetiredInstance& instance, ByteWriter& writer) {
  writer.String(key.first);
  writer.U32(static_cast<uint32_t>(key.second));
  WriteTime(instance.last_seen_wall, writer);
  writer.U32(static_cast<uint32_t>(instance.last_processes.size()));
  for (const auto& [ordinal, last] : instance.last_processes) {
    writer.U32(ordinal);
    WriteProcess(last, writer);
  }
}

void ReadInstance(ByteReader& reader, RetiredProcesses& processes, const CollectTime& now) {
  InstanceKey key;
  key.first = reader.String();
  key.second = static_cast<int32_t>(reader.U32());
  RetiredInstance instance;
  instance.last_seen_wall = ReadTime(reader);
  instance.last_seen = SteadyTime(instance.last_seen_wall, now);
  constexpr size_t kLastProcessBytes = 44;
  for (uint32_t left = reader.Count(kLastProcessBytes); left > 0 && reader.ok(); --left) {
    const uint32_t ordinal = reader.U32();
    instance.last_processes[ordinal] = ReadProcess(reader);
  }
  processes.Restore(key, std::move(instance));
}

void WriteExits(const InstanceKey& key, const RetiredInstance& instance, ByteWriter& writer) {
  writer.String(key.first);
  writer.U32(static_cast<uint32_t>(key.second));
  writer.U32(static_cast<uint32_t>(instance.exits.size()));
  for (const auto& [reason, count] : instance.exits) {
    writer.String(reason);
    writer.U64(count);
  }
  writer.U32(static_cast<uint32_t>(instance.last_exits.size()));
  for (const auto& [ordinal, reason] : instance.last_exits) {
    writer.U32(ordinal);
    writer.String(reason);
  }
}

void ReadExits(ByteReader& reader, RetiredProcesses& processes) {
  InstanceKey key;
  key.first = reader.String();
  key.second = static_cast<int32_t>(reader.U32());
  std::map<std::string, uint64_t> exits;
  constexpr size_t kExitBytes = 12;
  for (uint32_t left = reader.Count(kExitBytes); left > 0 && reader.ok(); --left) {
    const std::string reason(reader.String());
    exits[reason] = reader.U64();
  }
  std::map<uint32_t, std::string> last_exits;
  constexpr size_t kLastExitBytes = 8;
  for (uint32_t left = reader.Count(kLastExitBytes); left > 0 && reader.ok(); --left) {
    const uint32_t ordinal = reader.U32();
    last_exits[ordinal] = reader.String();
  }
  if (reader.ok()) processes.RestoreExits(key, std::move(exits), std::move(last_exits));
}

void WriteSpans(const InstanceKey& key, const RetiredInstance& instance, ByteWriter& writer) {
  writer.String(key.first);
  writer.U32(static_cast<uint32_t>(key.second));
  writer.U32(static_cast<uint32_t>(instance.last_spans.size()));
  for (const auto& [ordinal, span] : instance.last_spans) {
    writer.U32(ordinal);
    WriteTime(span.born, writer);
    WriteTime(span.ended, writer);
  }
}

void ReadSpans(ByteReader& reader, RetiredProcesses& processes) {
  InstanceKey key;
  key.first = reader.String();
  key.second = static_cast<int32_t>(reader.U32());
  std::map<uint32_t, ProcessSpan> spans;
  constexpr size_t kSpanBytes = 20;
  for (uint32_t left = reader.Count(kSpanBytes); left > 0 && reader.ok(); --left) {
    const uint32_t ordinal = reader.U32();
    const auto born = ReadTime(reader);
    spans[ordinal] = {.born = born, .ended = ReadTime(reader)};
  }
  if (reader.ok()) processes.RestoreSpans(key, std::move(spans));
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
    WriteFamily(input.families[i], writer);
    WriteAge(input.family_ages[i], writer);
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

std::string ReadGroup(ByteReader& reader, uint32_t version, RetiredProcesses& processes, const CollectTime& now) {
  const size_t groups = processes.groups().size();
  const SegmentIdentity identity = ReadIdentity(reader);
  RetiredGroup& group = processes.FindOrAddGroup(identity);
  if (!reader.ok() || processes.groups().size() == groups) return "a group occurs twice";
  group.UpdateIdentity(identity, reader.U64());
  for (size_t i = 0; i < kDroppedReasons; ++i) {
    group.dropped()[i] = reader.U64();
  }
  constexpr size_t kAgeBytes = 20;
  const uint32_t families = reader.Count(kMinFamilyBytes + kAgeBytes);
  for (uint32_t i = 0; i < families && reader.ok(); ++i) {
    const std::optional<SegmentFamily> family = ReadFamily(reader);
    if (!family || group.FindOrAddFamily(*family, ReadAge(reader)) != i) {
      return "family " + std::to_string(i) + " of a group is malformed";
    }
  }
  constexpr size_t kMinSeriesBytes = 28;
  for (uint32_t left = reader.Count(kMinSeriesBytes); left > 0 && reader.ok(); --left) {
    if (!ReadSeries(reader, version, families, group, processes.options().gauge_ttl, now)) {
      return "a series of a group is malformed";
    }
  }
  return reader.ok() ? "" : "a group is too short for its counts";
}

}  // namespace persia::agent
