#include "ledger/owned_series.h"

#include <tuple>

namespace persia::agent {

namespace segment = persia::metrics::segment;
using segment::Kind;

std::string_view LabelBytes(std::span<const std::byte> records, const SegmentSeriesRecord& record) {
  size_t end = record.labels_at;
  for (uint32_t i = 0; i < 2 * record.labels; ++i) CheckedString(records, end);
  return {reinterpret_cast<const char*>(records.data()) + record.labels_at, end - record.labels_at};
}

bool IsWholeCell(Kind kind, uint32_t cell) {
  switch (kind) {
    case Kind::kCounter:
      return cell == 0;
    case Kind::kHistogram:
    case Kind::kNativeHistogram:
      return cell >= 1;
    case Kind::kEvent:
      return cell == 1 || cell >= 3;
    case Kind::kStream:
      return cell >= segment::kStreamNegatives;
    case Kind::kGauge:
    case Kind::kClock:  // read as a counter
      break;
  }
  return false;
}

uint32_t SumCount(Kind kind) { return kind == Kind::kGauge ? 0 : kind == Kind::kStream ? 2 : 1; }

bool HasGauge(Kind kind) { return kind == Kind::kGauge || kind == Kind::kStream; }

bool HasCommon(Kind kind) { return HasGauge(kind) || kind == Kind::kEvent; }

SeriesValues::SeriesValues(Kind kind, uint32_t all_cells) : sums(SumCount(kind)) {
  for (uint32_t cell = 0; cell < all_cells; ++cell)
    if (IsWholeCell(kind, cell)) cells.push_back(0);
  if (HasCommon(kind)) common.emplace();
}

SeriesValues::SeriesValues(const Measurements& of, size_t number) {
  const SegmentSeries& series = of.series[number];
  const Kind kind = of.families[series.record.family].kind;
  removed = series.record.removed;
  for (uint32_t cell = 0; cell < series.record.cells; ++cell)
    if (IsWholeCell(kind, cell)) cells.push_back(of.values->wholes[series.whole + cell]);
  for (uint32_t which = 0; which < SumCount(kind); ++which) of.values->AppendTerms(series.real + which, sums.emplace_back());
  if (HasCommon(kind)) common.emplace(of.values->commons[series.common], of.changed_at[series.common]);
}

void OwnedSeries::Set(size_t number, const SeriesValues& to) {
  SegmentSeries& of = series[number];
  const Kind kind = families[of.record.family].kind;
  of.record.removed = to.removed;
  auto next = to.cells.begin();
  for (uint32_t cell = 0; cell < of.record.cells; ++cell)
    if (IsWholeCell(kind, cell)) values.wholes[of.whole + cell] = *next++;
  for (uint32_t which = 0; which < to.sums.size(); ++which) values.SetTerms(of.real + which, to.sums[which]);
  values.CompactTerms();
  if (to.common) std::tie(values.commons[of.common], changed_at[of.common]) = *to.common;
}

void OwnedSeries::Add(uint32_t family, std::string_view label_bytes, uint32_t label_count, uint64_t birth_unix_ns) {
  const Kind kind = families[family].kind;
  SegmentSeries added;
  added.record.family = family;
  added.record.cells = segment::CellsOf(kind, static_cast<uint32_t>(families[family].bounds.size()));
  added.record.labels = label_count;
  added.record.labels_at = labels.size();
  const auto* bytes = reinterpret_cast<const std::byte*>(label_bytes.data());
  labels.insert(labels.end(), bytes, bytes + label_bytes.size());
  if (kind != Kind::kGauge) {
    added.whole = static_cast<uint32_t>(values.wholes.size());
    values.wholes.resize(values.wholes.size() + added.record.cells);
    added.real = static_cast<uint32_t>(values.reals.size());
    values.reals.resize(values.reals.size() + SumCount(kind));
  }
  if (HasCommon(kind)) {
    added.common = static_cast<uint32_t>(values.commons.size());
    values.commons.push_back(HasGauge(kind) ? segment::kUnset : 0);
    changed_at.push_back(0);
  }
  series.push_back(added);
  births.push_back(birth_unix_ns);
}

Measurements OwnedSeries::View() const {
  Measurements view;
  view.families = families;
  view.series = series;
  view.records = labels;
  view.values = &values;
  view.changed_at = changed_at;
  view.ended = true;
  view.births = births;
  return view;
}

}  // namespace persia::agent
