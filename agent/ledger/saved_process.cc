#include "ledger/saved_process.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "files/bytes.h"
#include "ledger/segment_codec.h"

namespace persia::agent {
namespace {

using persia::metrics::segment::CellsOf;
using persia::metrics::segment::Kind;

constexpr uint8_t kUnknownFamily = 0;
constexpr uint8_t kKnownFamily = 1;

// The values of one series, comparable and encodable. Of a series that has none yet, all are 0.
struct SeriesValues {
  std::vector<uint64_t> cells;
  std::vector<double> terms[2];
  uint64_t common = 0;

  friend bool operator==(const SeriesValues&, const SeriesValues&) = default;
};

bool HasCommon(Kind kind) { return HasGauge(kind) || kind == Kind::kEvent; }

SeriesValues ValuesOf(const SegmentValues& values, const SegmentSeries& series, Kind kind) {
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
  }
}

}  // namespace

// The encoding: id, identity, birth (U64), ordinal (U32), process, 16 dropped counts (U64); the number of families so far
// (U32), the list of new ones (known (U8), then the family); the number of series so far (U32), the list of new ones (family
// (U32), birth (U64), number of labels (U32), labels (String)); the list of series whose values differ (number (U32), values).
std::string SavedProcess::Update(const Measurements& now, const LastProcess& process) {
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
                 now.ordinal != ordinal_ || !(process == process_) || now.families.size() != families_.size() ||
                 now.series.size() != series_.size() ||
                 !std::equal(std::begin(now.values->dropped), std::end(now.values->dropped), std::begin(values_.dropped));
  writer.U32(static_cast<uint32_t>(families_.size()));
  writer.U32(static_cast<uint32_t>(now.families.size() - families_.size()));
  for (size_t i = families_.size(); i < now.families.size(); ++i) {
    writer.U8(now.families[i].known ? kKnownFamily : kUnknownFamily);
    if (now.families[i].known) WriteFamily(now.families[i], writer);
  }
  writer.U32(static_cast<uint32_t>(series_.size()));
  writer.U32(static_cast<uint32_t>(now.series.size() - series_.size()));
  for (size_t i = series_.size(); i < now.series.size(); ++i) {
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
    const SeriesValues next = ValuesOf(*now.values, now.series[i], kind);
    if (i < series_.size() && next == ValuesOf(values_, series_[i], kind)) continue;
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

bool SavedProcess::Apply(std::string_view changes) {
  ByteReader reader(changes);
  id_ = reader.String();
  identity_ = ReadIdentity(reader);
  birth_unix_ns_ = reader.U64();
  ordinal_ = reader.U32();
  process_ = ReadProcess(reader);
  for (uint64_t& dropped : values_.dropped) {
    dropped = reader.U64();
  }
  if (reader.U32() != families_.size()) return false;
  for (uint32_t left = reader.Count(1); left > 0 && reader.ok(); --left) {
    const bool known = reader.U8() != kUnknownFamily;
    auto family = known ? ReadFamily(reader) : std::optional<SegmentFamily>(SegmentFamily());
    if (!family) return false;
    families_.push_back(*std::move(family));
  }
  if (reader.U32() != series_.size()) return false;
  constexpr size_t kMinSeriesBytes = 20;
  for (uint32_t left = reader.Count(kMinSeriesBytes); left > 0 && reader.ok(); --left) {
    const uint32_t family = reader.U32();
    const uint64_t birth_unix_ns = reader.U64();
    const uint32_t label_count = reader.U32();
    const std::string_view labels = reader.String();
    if (!reader.ok() || family >= families_.size() || !families_[family].known || !AreLabels(labels, label_count)) return false;
    AddSeries(family, label_count, labels);
    births_.push_back(birth_unix_ns);
  }
  constexpr size_t kMinValueBytes = 12;
  for (uint32_t left = reader.Count(kMinValueBytes); left > 0 && reader.ok(); --left) {
    const uint32_t number = reader.U32();
    if (!reader.ok() || number >= series_.size()) return false;
    const SegmentSeries& series = series_[number];
    const Kind kind = families_[series.record.family].kind;
    for (uint32_t cell = 0; kind != Kind::kGauge && cell < series.record.cells; ++cell) {
      if (IsWholeCell(kind, cell)) values_.wholes[series.whole + cell] = reader.U64();
    }
    for (uint32_t which = 0; which < SumCount(kind); ++which) {
      values_.SetTerms(series.real + which, ReadTerms(reader));
    }
    if (HasCommon(kind)) values_.commons[series.common] = reader.U64();
  }
  values_.CompactTerms();
  return reader.done();
}

void SavedProcess::AddSeries(uint32_t family, uint32_t label_count, std::string_view labels) {
  const Kind kind = families_[family].kind;
  SegmentSeries series;
  series.record = {.family = family,
                   .cells = CellsOf(kind, static_cast<uint32_t>(families_[family].bounds.size())),
                   .labels = label_count,
                   .labels_at = labels_.size()};
  const auto* bytes = reinterpret_cast<const std::byte*>(labels.data());
  labels_.insert(labels_.end(), bytes, bytes + labels.size());
  if (kind != Kind::kGauge) {
    series.whole = static_cast<uint32_t>(values_.wholes.size());
    values_.wholes.resize(values_.wholes.size() + series.record.cells);
    series.real = static_cast<uint32_t>(values_.reals.size());
    values_.reals.resize(values_.reals.size() + SumCount(kind));
  }
  if (HasCommon(kind)) {
    series.common = static_cast<uint32_t>(values_.commons.size());
    values_.commons.push_back(0);
    changed_at_.push_back(0);
  }
  series_.push_back(series);
}

std::string SavedProcess::Whole() const { return SavedProcess().Update(Input(), process_); }

Measurements SavedProcess::Input() const {
  return {.id = id_,
          .identity = &identity_,
          .birth_unix_ns = birth_unix_ns_,
          .families = families_,
          .series = series_,
          .records = labels_,
          .values = &values_,
          .changed_at = changed_at_,
          .ended = true,
          .ordinal = ordinal_,
          .births = births_};
}

}  // namespace persia::agent
