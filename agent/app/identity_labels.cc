#include "app/identity_labels.h"

#include <algorithm>

namespace persia::agent {

std::shared_ptr<const Snapshot> IdentityLabels::AddTo(const std::shared_ptr<const Snapshot>& snapshot) {
  if (labels_.empty() || snapshot == nullptr) {
    return snapshot;
  }
  if (snapshot->layout != input_) {
    auto layout = std::make_shared<Layout>(*snapshot->layout);
    for (Identity& identity : layout->identities) {
      identity = AddTo(std::move(identity));
    }
    input_ = snapshot->layout;
    output_ = std::move(layout);
  }
  auto labelled = std::make_shared<Snapshot>(*snapshot);
  labelled->layout = output_;
  return labelled;
}

Identity IdentityLabels::AddTo(Identity identity) const {
  for (const auto& label : labels_) {
    const auto place = std::lower_bound(identity.labels.begin(), identity.labels.end(), label,
                                        [](const auto& a, const auto& b) { return a.first < b.first; });
    if (place == identity.labels.end() || place->first != label.first) {
      identity.labels.insert(place, label);
    }
  }
  return identity;
}

}  // namespace persia::agent
