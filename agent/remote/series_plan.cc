#include "remote/series_plan.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "format/native_message.h"
#include "format/number.h"
#include "remote/write_request.h"

namespace persia::agent {
namespace {

constexpr char kName[] = "__name__";

void InsertLabel(Labels& labels, std::string name, std::string value) {
  const auto place = std::lower_bound(labels.begin(), labels.end(), name,
                                      [](const auto& label, const auto& wanted) { return label.first < wanted; });
  labels.emplace(place, std::move(name), std::move(value));
}

}  // namespace

// The slot of these labels, or the free slot for them.
size_t SeriesTable::SlotOf(std::string_view labels, uint64_t hash) const {
  size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot] != kFree && (hashes_[slots_[slot]] != hash || this->labels(slots_[slot]) != labels))
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

bool SeriesTable::Add(std::string_view labels) {
  const uint64_t hash = std::hash<std::string_view>()(labels);
  const size_t slot = SlotOf(labels, hash);
  if (slots_[slot] != kFree) return false;
  slots_[slot] = static_cast<uint32_t>(size());
  text_ += labels;
  ends_.push_back(text_.size());
  hashes_.push_back(hash);
  if (2 * (size() + 1) > slots_.size()) {
    slots_.assign(2 * slots_.size(), kFree);
    for (size_t i = 0; i < size(); ++i) slots_[SlotOf(this->labels(i), hashes_[i])] = static_cast<uint32_t>(i);
  }
  return true;
}

std::optional<uint32_t> SeriesTable::Find(std::string_view labels) const {
  const uint32_t series = slots_[SlotOf(labels, std::hash<std::string_view>()(labels))];
  return series == kFree ? std::nullopt : std::optional(series);
}

SeriesPlan::SeriesPlan(const Layout& layout, const RelabelRules& rules, bool sends_native)
    : layout_(layout), sends_native_(sends_native) {
  for (const FamilyLayout& family : layout.families)
    for (const SeriesLayout& series : family.series) AddSeries(family, series, layout.identities[series.identity], rules);
  if (!native_indexes_.empty()) native_indexes_.resize(series_.size(), kNone);
}

void SeriesPlan::AddSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity& identity,
                           const RelabelRules& rules) {
  Labels labels = series.labels.ToList();
  labels.insert(labels.end(), identity.labels.begin(), identity.labels.end());
  labels.emplace_back("job", identity.job);
  std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
  std::sort(labels.begin(), labels.end());
  const auto add = [&](const char* suffix, const char* extra = nullptr, const std::string& value = {}) {
    Labels line = labels;
    InsertLabel(line, kName, family.name + suffix);
    if (extra != nullptr) InsertLabel(line, extra, value);
    Add(std::move(line), rules);
  };
  if (HasNative(family)) {
    const Native native{&*family.native, series.first_value};
    Labels named = labels;
    InsertLabel(named, kName, family.name);
    Add(std::move(named), rules, &native);
  }
  if (!HasLines(family)) return;
  switch (family.type) {
    case MetricType::kHistogram:
      for (const double bound : family.bounds) add("_bucket", "le", LabelText(bound));
      add("_bucket", "le", "+Inf");
      break;
    case MetricType::kSummary:
      for (const double quantile : family.bounds) add("", "quantile", LabelText(quantile));
      break;
    default:
      return add("");
  }
  add("_sum");
  add("_count");
}

void SeriesPlan::Add(Labels labels, const RelabelRules& rules, const Native* native) {
  targets_.push_back(kNone);
  if (!Relabel(rules, labels)) return;
  encoded_.assign(native == nullptr ? 0 : 1, kNativeMark);
  for (const auto& [name, value] : labels) AppendLabel(encoded_, name, value);
  const bool named = std::any_of(labels.begin(), labels.end(), [](const auto& label) { return label.first == kName; });
  if (!named || !series_.Add(encoded_)) {
    if (++conflicting_ == 1)
      for (const auto& [name, value] : labels) example_ += (example_.empty() ? "" : ", ") + name + "=\"" + value + '"';
    return;
  }
  targets_.back() = static_cast<uint32_t>(series_.size() - 1);
  if (native == nullptr) return;
  native_indexes_.resize(series_.size(), kNone);
  native_indexes_.back() = static_cast<uint32_t>(natives_.size());
  natives_.push_back(*native);
}

std::vector<int64_t> SeriesPlan::CreatedMs() const {
  std::vector<int64_t> created_ms(series_.size());
  const uint32_t* target = targets_.data();
  for (const FamilyLayout& family : layout_.families) {
    const bool is_summary = family.type == MetricType::kSummary;
    const size_t quantiles = is_summary ? family.bounds.size() : 0;
    const size_t lines = family.type == MetricType::kHistogram ? family.bounds.size() + 3 : is_summary ? 2 : 1;
    const size_t counts = (HasNative(family) ? 1 : 0) + (HasLines(family) ? lines : 0);
    for (const SeriesLayout& series : family.series) {
      target += quantiles;
      for (size_t i = 0; i < counts; ++i)
        if (const uint32_t at = *target++; at != kNone) created_ms[at] = series.created_ms;
    }
  }
  return created_ms;
}

void SeriesPlan::Values(const std::vector<double>& values, std::vector<uint64_t>& bits) const {
  bits.resize(series_.size());
  const uint32_t* target = targets_.data();
  for (const FamilyLayout& family : layout_.families) {
    const size_t bounds = family.bounds.size();
    for (const SeriesLayout& series : family.series) {
      const double* value = values.data() + series.first_value;
      const bool is_absent = IsAbsent(*value);
      const auto put = [&](double number) {
        if (const uint32_t at = *target++; at != kNone) bits[at] = is_absent || IsAbsent(number) ? kAbsent : BitsOf(number);
      };
      if (HasNative(family)) put(static_cast<double>(NativeCount(*family.native, value + 1)));
      if (!HasLines(family)) continue;
      if (family.type == MetricType::kHistogram) {
        ClassicBuffer buffer;
        const double* const counts = family.BucketCounts(value, buffer);
        double count = 0;
        for (size_t i = 0; i <= bounds; ++i) put(count += counts[i]);
        put(value[0]);
        put(count);
      } else if (family.type == MetricType::kSummary) {
        for (size_t i = 0; i < bounds; ++i) put(value[2 + i]);
        put(value[0]);
        put(value[1]);
      } else {
        put(*value);
      }
    }
  }
}

}  // namespace persia::agent
