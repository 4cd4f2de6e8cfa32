// Snapshots that a test distinguishes by their only value.
#pragma once

#include <memory>

#include "model/snapshot.h"

namespace persia::agent {

inline std::shared_ptr<const Snapshot> Numbered(double number) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = std::make_shared<Layout>();
  snapshot->values = {number};
  return snapshot;
}

}  // namespace persia::agent
