// Where metrics go.
#pragma once

#include "model/result.h"
#include "model/snapshot.h"

namespace persia::agent {

// A receiver of snapshots: a PushGateway.
class Sink {
 public:
  virtual ~Sink() = default;
  // Hands over all of the snapshot. An error says what did not arrive, and why.
  virtual Status Push(const Snapshot& snapshot) = 0;
};

}  // namespace persia::agent
