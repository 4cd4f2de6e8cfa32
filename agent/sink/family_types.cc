#include "sink/family_types.h"

namespace persia::agent {

std::optional<Snapshot> FamilyTypes::WithoutChanged(const Snapshot& snapshot) const {
  if (snapshot.layout == layout_) {
    return std::nullopt;
  }
  const auto changed = [this](const FamilyLayout& family) {
    const auto before = types_.find(family.name);
    return before != types_.end() && before->second != family.type;
  };
  auto layout = std::make_shared<Layout>(*snapshot.layout);
  if (std::erase_if(layout->families, changed) == 0) {
    return std::nullopt;
  }
  Snapshot without = snapshot;
  without.layout = std::move(layout);
  return without;
}

void FamilyTypes::Take(const Snapshot& snapshot) {
  if (snapshot.layout == layout_) {
    return;
  }
  layout_ = snapshot.layout;
  types_.clear();
  for (const FamilyLayout& family : layout_->families) {
    types_.emplace(family.name, family.type);
  }
}

}  // namespace persia::agent
