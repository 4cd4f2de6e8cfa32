#include "ledger/saved_process.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include "files/bytes.h"
#include "ledger/segment_codec.h"

namespace persia::agent {
namespace {

using persia::metrics::segment::Kind;

constexpr uint8_t kUnknownFamily = 0;
constexpr uint8_t kKnownFamily = 1;

// The values of one series, comparable and encodable. For a series that has none yet, all are 0.
struct SeriesValues {
  std::vector<uint64_t> cells;
  std::vector<double> terms[2];
  uint64_t common = 0;
  uint64_t changed_at = 0;

  friend bool operator==(const SeriesValues&, const SeriesValues&) = default;
};

SeriesValues ValuesOf(const SegmentValues& values, std::span<const uint64_t> changed_at, const SegmentSeries& series,
                      Kind kind) {
  SeriesValues out;
  for (uint32_t cell = 0; kind != Kind::kGauge && cell < series.record.cells; ++cell) {
    if (IsWholeCell(kind, cell)) {
      out.cells.push_back(values.wholes[series.whole + cell]);
    }
  }
  for (uint32_t which = 0; which < SumCount(kind); ++which) {
    values.AppendTerms(series.real + which, out.terms[which]);
  }
  if (HasCommon(kind)) {
    out.common = values.commons[series.common];
    out.changed_at = changed_at[series.common];
  }
  return out;
}

void WriteValues(const SeriesValues& values, Kind kind, ByteWriter& writer) {
  for (const uint64_t cell : values.cells) {
    writer.U64(cell);
  }
  for (uint32_t which = 0; which < SumCount(kind); ++which) {
    WriteTerms(values.terms[which], writer);
  }
  if (HasCommon(kind)) {
    writer.U64(values.common);
    writer.U64(values.changed_at);
  }
}

}  // namespace

// The encoding: id, identity, birth (U64), ordinal (U32), process, 16 dropped counts (U64); the number of families so far
// (U32), the list of new ones (known (U8), then the family); the number of series so far (U32), the list of new ones (family
// (U32), birth (U64), number of labels (U32), labels (String)); the list of series whose values differ (number (U32), values).
std::string SavedProcess::Update(const Measurements& now, const LastProcess& process) {
  if (!IsBeginningOf(now)) own_ = {};
  ByteWriter writer;
  writer.String(now.id);
  WriteIdentity(*now.identity, writer);
  writer.U64(now.birth_unix_ns);
  writer.U32(now.ordinal);
  WriteProcess(process, writer);
  for (const uint64_t dropped : now.values->dropped) {
    writer.U64(dropped);
  }
  bool changed = now.id != id_ || !(*now.identity == identity_) || now.birth_unix_ns != birth_unix_ns_ ||
                 now.ordinal != ordinal_ || !(process == process_) || now.families.size() != own_.families.size() ||
                 now.series.size() != own_.series.size() ||
                 !std::equal(std::begin(now.values->dropped), std::end(now.values->dropped), std::begin(own_.values.dropped));
  writer.U32(static_cast<uint32_t>(own_.families.size()));
  writer.U32(static_cast<uint32_t>(now.families.size() - own_.families.size()));
  for (size_t i = own_.families.size(); i < now.families.size(); ++i) {
    writer.U8(now.families[i].known ? kKnownFamily : kUnknownFamily);
    if (now.families[i].known) WriteFamily(now.families[i], writer);
  }
  writer.U32(static_cast<uint32_t>(own_.series.size()));
  writer.U32(static_cast<uint32_t>(now.series.size() - own_.series.size()));
  for (size_t i = own_.series.size(); i < now.series.size(); ++i) {
    const SegmentSeriesRecord& record = now.series[i].record;
    writer.U32(record.family);
    writer.U64(now.BirthOf(i));
    writer.U32(record.labels);
    writer.String(LabelBytes(now.records, record));
  }
  ByteWriter values;
  uint32_t differ = 0;
  for (size_t i = 0; i < now.series.size(); ++i) {
    const Kind kind = now.families[now.series[i].record.family].kind;
    const SeriesValues next = ValuesOf(*now.values, now.changed_at, now.series[i], kind);
    if (i < own_.series.size() && next == ValuesOf(own_.values, own_.changed_at, own_.series[i], kind)) continue;
    values.U32(static_cast<uint32_t>(i));
    WriteValues(next, kind, values);
    ++differ;
  }
  changed = changed || differ > 0;
  if (!changed) return {};
  writer.U32(differ);
  std::string changes = std::move(writer).Take() + std::move(values).Take();
  Apply(changes);
  return changes;
}

// A segment only grows. A file with the id of another segment may have anything in it.
bool SavedProcess::IsBeginningOf(const Measurements& now) const {
  const auto same_family = [](const SegmentFamily& a, const SegmentFamily& b) {
    return a.known == b.known && a.kind == b.kind && a.policy == b.policy && a.bounds == b.bounds &&
           a.max_buckets == b.max_buckets && a.group == b.group && a.name == b.name;
  };
  const auto same_series = [](const SegmentSeries& a, const SegmentSeries& b) {
    return a.record.family == b.record.family && a.record.cells == b.record.cells && a.record.labels == b.record.labels;
  };
  return now.families.size() >= own_.families.size() && now.series.size() >= own_.series.size() &&
         std::equal(own_.families.begin(), own_.families.end(), now.families.begin(), same_family) &&
         std::equal(own_.series.begin(), own_.series.end(), now.series.begin(), same_series);
}

bool SavedProcess::Apply(std::string_view changes) {
  ByteReader reader(changes);
  id_ = reader.String();
  identity_ = ReadIdentity(reader);
  birth_unix_ns_ = reader.U64();
  ordinal_ = reader.U32();
  process_ = ReadProcess(reader);
  uint64_t dropped[std::extent_v<decltype(SegmentValues::dropped)>] = {};
  for (uint64_t& count : dropped) {
    count = reader.U64();
  }
  const uint32_t families = reader.U32();
  if (families == 0) own_ = {};  // all of it follows
  if (families != own_.families.size()) return false;
  std::copy(std::begin(dropped), std::end(dropped), std::begin(own_.values.dropped));
  for (uint32_t left = reader.Count(1); left > 0 && reader.ok(); --left) {
    const bool known = reader.U8() != kUnknownFamily;
    auto family = known ? ReadFamily(reader) : std::optional<SegmentFamily>(SegmentFamily());
    if (!family) return false;
    own_.families.push_back(*std::move(family));
  }
  if (reader.U32() != own_.series.size()) return false;
  constexpr size_t kMinSeriesBytes = 20;
  for (uint32_t left = reader.Count(kMinSeriesBytes); left > 0 && reader.ok(); --left) {
    const uint32_t family = reader.U32();
    const uint64_t birth_unix_ns = reader.U64();
    const uint32_t label_count = reader.U32();
    const std::string_view labels = reader.String();
    if (!reader.ok() || family >= own_.families.size() || !own_.families[family].known || !AreLabels(labels, label_count))
      return false;
    own_.Add(family, labels, label_count, birth_unix_ns);
  }
  constexpr size_t kMinValueBytes = 12;
  for (uint32_t left = reader.Count(kMinValueBytes); left > 0 && reader.ok(); --left) {
    const uint32_t number = reader.U32();
    if (!reader.ok() || number >= own_.series.size()) return false;
    const SegmentSeries& series = own_.series[number];
    const Kind kind = own_.families[series.record.family].kind;
    for (uint32_t cell = 0; kind != Kind::kGauge && cell < series.record.cells; ++cell) {
      if (IsWholeCell(kind, cell)) own_.values.wholes[series.whole + cell] = reader.U64();
    }
    for (uint32_t which = 0; which < SumCount(kind); ++which) {
      own_.values.SetTerms(series.real + which, ReadTerms(reader));
    }
    if (HasCommon(kind)) {
      own_.values.commons[series.common] = reader.U64();
      own_.changed_at[series.common] = reader.U64();
    }
  }
  own_.values.CompactTerms();
  return reader.done();
}

std::string SavedProcess::Whole() const { return SavedProcess().Update(Input(), process_); }

// The encoding: id, the list of the numbers of removed series (U32).
std::string SavedProcess::UpdateRemoved(const Measurements& now) {
  const auto same = [](const SegmentSeries& a, const SegmentSeries& b) { return a.record.removed == b.record.removed; };
  if (std::ranges::equal(own_.series, now.series, same)) return {};
  ApplyRemoved(NumbersOfRemoved(now.series));
  return WriteRemoved();
}

void SavedProcess::ApplyRemoved(std::span<const uint32_t> removed) {
  for (SegmentSeries& series : own_.series) {
    series.record.removed = false;
  }
  for (const uint32_t number : removed) {
    if (number < own_.series.size()) own_.series[number].record.removed = true;
  }
}

std::string SavedProcess::Removed() const { return NumbersOfRemoved(own_.series).empty() ? "" : WriteRemoved(); }

std::string SavedProcess::WriteRemoved() const {
  ByteWriter writer;
  writer.String(id_);
  WriteNumbers(NumbersOfRemoved(own_.series), writer);
  return std::move(writer).Take();
}

Measurements SavedProcess::Input() const {
  Measurements input = own_.View();
  input.id = id_;
  input.identity = &identity_;
  input.birth_unix_ns = birth_unix_ns_;
  input.ordinal = ordinal_;
  return input;
}

}  // namespace persia::agent
