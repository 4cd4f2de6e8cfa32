#include "model/rows.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

namespace persia::agent {

namespace {

Labels Sorted(const SeriesLabels& labels) {
  Labels sorted = labels.ToList();
  std::ranges::sort(sorted);
  return sorted;
}

}  // namespace

void Rows::On(const Identity& identity) {
  const size_t row = values_.size();
  if (row < keys_.size() && *keys_[row].identity == identity)
    identity_ = keys_[row].identity;  // without a search, if the rows are the same as before
  else
    identity_ = &*identities_.insert(identity).first;
}

void Rows::ForgetFrom(size_t row) {
  keys_.resize(row);
  layout_ = nullptr;
}

std::shared_ptr<const Snapshot> Rows::Take() {
  if (values_.size() < keys_.size()) ForgetFrom(values_.size());
  if (layout_ == nullptr || layout_->value_count != keys_.size()) layout_ = MakeLayout();
  auto snapshot = std::make_shared<Snapshot>(
      Snapshot{.layout = layout_, .values = std::move(values_), .collected_at = std::chrono::system_clock::now()});
  values_.clear();
  values_.reserve(keys_.size());
  return snapshot;
}

std::shared_ptr<const Layout> Rows::MakeLayout() {
  auto layout = std::make_shared<Layout>();
  std::map<const Identity*, uint32_t> identities;
  std::map<std::string_view, FamilyLayout> families;
  for (const Key& key : keys_) {
    const auto [identity, is_new] = identities.emplace(key.identity, static_cast<uint32_t>(layout->identities.size()));
    if (is_new) layout->identities.push_back(*key.identity);
    FamilyLayout& family = families[key.family.name];
    if (family.series.empty()) {
      family.name = key.family.name;
      family.type = key.family.type;
      family.help = key.family.help;
    }
    family.series.push_back({.identity = identity->second, .first_value = layout->value_count++, .labels = Sorted(key.labels)});
  }
  std::erase_if(identities_, [&](const Identity& identity) { return !identities.contains(&identity); });
  identity_ = nullptr;
  for (auto& [name, family] : families) layout->families.push_back(std::move(family));
  return layout;
}

}  // namespace persia::agent
