#include "model/combine.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace persia::agent {
namespace {

bool Has(const Labels& labels, std::string_view name) {
  return std::any_of(labels.begin(), labels.end(), [&](const auto& label) { return label.first == name; });
}

// The label name that the exposition of this type needs for itself.
std::string_view ReservedLabel(MetricType type) {
  if (type == MetricType::kHistogram) return "le";
  if (type == MetricType::kSummary) return "quantile";
  return "";
}

// Puts a layout together, part by part. The values of the combined snapshot are those of the parts one after another, so a
// series' place is its place in its part, moved by what came before: a collect is then one copy per part.
class Builder {
 public:
  void Add(const Layout& part) {
    std::vector<uint32_t> identities;
    for (const Identity& identity : part.identities) identities.push_back(IdentityIndex(identity));
    for (const FamilyLayout& family : part.families) AddFamily(family, identities);
    layout_.value_count += part.value_count;
  }

  Layout Finish() {
    layout_.families.reserve(families_.size());
    for (auto& [name, family] : families_) {
      if (MeetsLinesOfAnother(name)) continue;
      family.kept = true;
      layout_.families.push_back(std::move(family.layout));
    }
    return std::move(layout_);
  }

  // A sentence for each family of which something was left out, by the family's name.
  std::map<std::string, std::string>& left_out() { return left_out_; }
  [[nodiscard]] size_t series_left_out() const { return series_left_out_; }

 private:
  struct Family {
    FamilyLayout layout;
    // Filled once a duplicate is possible.
    std::set<std::pair<uint32_t, Labels>> seen;
    bool may_repeat = false;
    bool kept = false;
  };

  uint32_t IdentityIndex(const Identity& identity) {
    auto [at, is_new] = identity_index_.try_emplace(identity, static_cast<uint32_t>(layout_.identities.size()));
    if (is_new) layout_.identities.push_back(identity);
    return at->second;
  }

  void AddFamily(const FamilyLayout& from, const std::vector<uint32_t>& identities) {
    auto [at, is_new] = families_.try_emplace(from.name);
    Family& family = at->second;
    FamilyLayout& to = family.layout;
    if (is_new) {
      to.name = from.name;
      to.type = from.type;
      to.bounds = from.bounds;
    } else if (to.type != from.type) {
      LeaveOut(from.name,
               std::string("a ") + std::string(TypeName(from.type)) + " where another source has a " +
                   std::string(TypeName(to.type)),
               from.series.size());
      return;
    } else if (to.bounds != from.bounds) {
      LeaveOut(from.name, "a " + std::string(TypeName(from.type)) + " with other bounds than another source's",
               from.series.size());
      return;
    } else {
      ExpectRepeats(family);
    }
    if (to.help.empty()) to.help = from.help;
    if (to.unit.empty()) to.unit = from.unit;
    to.series.reserve(to.series.size() + from.series.size());
    for (const SeriesLayout& series : from.series) AddSeries(family, series, identities[series.identity]);
  }

  void AddSeries(Family& family, const SeriesLayout& from, uint32_t identity) {
    SeriesLayout series{.identity = identity, .first_value = layout_.value_count + from.first_value, .labels = from.labels};
    if (auto fit = FitLabels(family.layout.type, layout_.identities[identity], from.labels)) {
      series.labels = *fit;
      ExpectRepeats(family);
    }
    if (family.may_repeat && !family.seen.emplace(identity, series.labels.ToList()).second) {
      LeaveOut(family.layout.name, "the same series twice", 1);
      return;
    }
    family.layout.series.push_back(std::move(series));
  }

  void ExpectRepeats(Family& family) {
    if (family.may_repeat) return;
    family.may_repeat = true;
    for (const SeriesLayout& series : family.layout.series) family.seen.emplace(series.identity, series.labels.ToList());
  }

  // Nothing if they fit as they are.
  static std::optional<Labels> FitLabels(MetricType type, const Identity& identity, const SeriesLabels& from) {
    const std::string_view reserved = ReservedLabel(type);
    const auto taken = [&](std::string_view name) { return name == "job" || name == reserved || Has(identity.labels, name); };
    if (std::none_of(from.begin(), from.end(), [&](const auto& label) { return label.second.empty() || taken(label.first); })) {
      return std::nullopt;
    }
    Labels labels = from.ToList();
    std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
    for (auto& [name, value] : labels) {
      if (!taken(name)) continue;
      std::string renamed = "exported_" + name;
      while (taken(renamed) || Has(labels, renamed)) renamed = "exported_" + renamed;
      name = std::move(renamed);
    }
    std::sort(labels.begin(), labels.end());
    return labels;
  }

  // A family `x_count` beside a histogram `x`: a reader of the text takes its lines for the histogram's and refuses all of it.
  // Families come in the order of their names, so the shorter one was seen before.
  bool MeetsLinesOfAnother(const std::string& name) {
    static constexpr std::array<std::string_view, 3> kSuffixes{"_bucket", "_count", "_sum"};
    for (std::string_view suffix : kSuffixes) {
      if (!name.ends_with(suffix)) continue;
      const auto other = families_.find(std::string(name.substr(0, name.size() - suffix.size())));
      if (other == families_.end() || !other->second.kept) continue;
      const MetricType type = other->second.layout.type;
      if (type == MetricType::kHistogram || (type == MetricType::kSummary && suffix != "_bucket")) {
        LeaveOut(name, "its name is that of a line of the " + std::string(TypeName(type)) + " \"" + other->first + '"',
                 families_.at(name).layout.series.size());
        return true;
      }
    }
    return false;
  }

  void LeaveOut(const std::string& name, const std::string& why, size_t series) {
    series_left_out_ += series;
    left_out_.try_emplace(name, "metric \"" + name + "\" is left out, in part or whole: " + why + "; rename one of them");
  }

  Layout layout_;
  std::map<Identity, uint32_t> identity_index_;
  std::map<std::string, Family> families_;
  std::map<std::string, std::string> left_out_;
  size_t series_left_out_ = 0;
};

}  // namespace

std::shared_ptr<const Snapshot> SnapshotCombiner::Combine(const std::vector<std::shared_ptr<const Snapshot>>& parts) {
  std::vector<const Snapshot*> present;
  present.reserve(parts.size());
  for (const auto& part : parts) {
    if (part) present.push_back(part.get());
  }
  const auto same_layout = [](const Snapshot* part, const auto& layout) { return part->layout == layout; };
  if (!layout_ || !std::equal(present.begin(), present.end(), inputs_.begin(), inputs_.end(), same_layout)) Rebuild(present);

  auto combined = std::make_shared<Snapshot>();
  combined->layout = layout_;
  combined->values.reserve(layout_->value_count);
  for (const Snapshot* part : present) {
    combined->values.insert(combined->values.end(), part->values.begin(), part->values.end());
    combined->collected_at = std::max(combined->collected_at, part->collected_at);
  }
  return combined;
}

void SnapshotCombiner::Rebuild(const std::vector<const Snapshot*>& parts) {
  Builder builder;
  inputs_.clear();
  for (const Snapshot* part : parts) {
    builder.Add(*part->layout);
    inputs_.push_back(part->layout);
  }
  layout_ = std::make_shared<const Layout>(builder.Finish());

  std::set<std::string> left_out;
  for (const auto& [name, message] : builder.left_out()) {
    if (!left_out_.contains(name) && report_) report_(message);
    left_out.insert(name);
  }
  left_out_ = std::move(left_out);
  series_left_out_ = builder.series_left_out();
}

}  // namespace persia::agent
