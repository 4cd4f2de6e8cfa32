// Puts the labels of the config on every identity of a snapshot.
//
// Thread safety: none, it belongs to the collector thread.
#pragma once

#include <memory>

#include "model/snapshot.h"

namespace persia::agent {

class IdentityLabels {
 public:
  explicit IdentityLabels(Labels labels) : labels_(std::move(labels)) {}

  // The same snapshot if there are no labels. The same layout gives the same layout.
  std::shared_ptr<const Snapshot> AddTo(const std::shared_ptr<const Snapshot>& snapshot);
  // `identity` with the labels; those that it has already stay as they are.
  [[nodiscard]] Identity AddTo(Identity identity) const;

 private:
  Labels labels_;
  std::shared_ptr<const Layout> input_;  // of which output_ was made
  std::shared_ptr<const Layout> output_;
};

}  // namespace persia::agent
