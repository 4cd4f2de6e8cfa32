#include "model/layout_builder.h"

#include <algorithm>
#include <utility>

namespace persia::agent {

void LayoutBuilder::Add(const Identity& identity, const Family& family, Labels labels) {
  const auto [index, is_new_identity] = identities_.emplace(identity, static_cast<uint32_t>(layout_->identities.size()));
  if (is_new_identity) layout_->identities.push_back(identity);
  auto at = families_.find(family.name);
  if (at == families_.end()) {
    at = families_.emplace(family.name, layout_->families.size()).first;
    layout_->families.push_back({.name = std::string(family.name),
                                 .type = family.type,
                                 .help = std::string(family.help),
                                 .unit = "",
                                 .bounds = {},
                                 .series = {}});
  }
  std::ranges::sort(labels);
  layout_->families[at->second].series.push_back(
      {.identity = index->second, .first_value = layout_->value_count++, .labels = std::move(labels)});
}

std::shared_ptr<const Layout> LayoutBuilder::Build() && {
  std::ranges::sort(layout_->families, {}, &FamilyLayout::name);
  return std::move(layout_);
}

}  // namespace persia::agent
