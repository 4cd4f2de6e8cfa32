#include "ledger/saved_process.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "files/bytes.h"
#include "ledger/ledger_records.h"

namespace persia::agent {
namespace {

struct NewSeries {
  uint32_t family = 0;
  uint64_t birth_unix_ns = 0;
  uint32_t label_count = 0;
  std::string_view labels;

  template <class Archive>
  friend void Fields(Archive& archive, NewSeries& series) {
    archive(series.family, series.birth_unix_ns, series.label_count, series.labels);
  }
};

}  // namespace

// The encoding: id, identity, birth (U64), ordinal (U32), process, 16 dropped counts (U64); the number of families so far
// (U32), the list of new ones; the number of series so far (U32), the list of new ones; the list of series that differ: number
// (U32), values.
std::string SavedProcess::Update(const Measurements& now, const LastProcess& process) {
  if (!IsBeginningOf(now)) own_ = {};
  const std::string head = Encode(now.id, *now.identity, now.birth_unix_ns, now.ordinal, process, now.values->dropped);
  ByteWriter values;
  uint32_t differ = 0;
  const Measurements before = own_.View();
  for (size_t i = 0; i < now.series.size(); ++i) {
    const SeriesValues next(now, i);
    if (i < own_.series.size() && next == SeriesValues(before, i)) continue;
    values(static_cast<uint32_t>(i), next);
    ++differ;
  }
  if (differ == 0 && now.families.size() == own_.families.size() && head == Head()) return {};
  ByteWriter writer;
  writer(static_cast<uint32_t>(own_.families.size()), now.families.subspan(own_.families.size()));
  writer(static_cast<uint32_t>(own_.series.size()), static_cast<uint32_t>(now.series.size() - own_.series.size()));
  for (size_t i = own_.series.size(); i < now.series.size(); ++i) {
    const SegmentSeriesRecord& record = now.series[i].record;
    writer(NewSeries{record.family, now.BirthOf(i), record.labels, LabelBytes(now.records, record)});
  }
  writer(differ);
  std::string changes = head + std::move(writer).Take() + std::move(values).Take();
  Apply(changes);
  return changes;
}

std::string SavedProcess::Head() const {
  return Encode(id_, identity_, birth_unix_ns_, ordinal_, process_, own_.values.dropped);
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
  uint64_t dropped[std::extent_v<decltype(SegmentValues::dropped)>] = {};
  uint32_t families = 0;
  std::vector<SegmentFamily> new_families;
  reader(id_, identity_, birth_unix_ns_, ordinal_, process_, dropped, families, new_families);
  if (families == 0) own_ = {};  // all of it follows
  if (families != own_.families.size() || reader.U32() != own_.series.size()) return false;
  std::ranges::copy(dropped, own_.values.dropped);
  std::ranges::move(new_families, std::back_inserter(own_.families));
  for (uint32_t left = reader.Count(1); left > 0; --left) {
    NewSeries series;
    reader(series);
    const bool is_good = reader.ok() && series.family < own_.families.size() && own_.families[series.family].known &&
                         AreLabels(series.labels, series.label_count);
    if (!is_good) return false;
    own_.Add(series.family, series.labels, series.label_count, series.birth_unix_ns);
  }
  for (uint32_t left = reader.U32(); left > 0; --left) {
    const uint32_t number = reader.U32();
    if (!reader.ok() || number >= own_.series.size()) return false;
    const SegmentSeriesRecord& record = own_.series[number].record;
    SeriesValues values(own_.families[record.family].kind, record.cells);
    reader(values);
    if (!reader.ok()) return false;
    own_.Set(number, values);
  }
  return reader.done();
}

std::string SavedProcess::Whole() const { return SavedProcess().Update(Input(), process_); }

Measurements SavedProcess::Input() const {
  Measurements input = own_.View();
  input.id = id_;
  input.identity = &identity_;
  input.birth_unix_ns = birth_unix_ns_;
  input.ordinal = ordinal_;
  return input;
}

}  // namespace persia::agent
