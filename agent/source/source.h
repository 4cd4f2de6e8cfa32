// Where metrics come from.
#pragma once

#include <memory>

#include "model/result.h"
#include "model/snapshot.h"

namespace persia::agent {

// A source of metrics: the workers' segments, the agent itself. Used by the collector thread alone.
class Source {
 public:
  virtual ~Source() = default;
  // The values now. The same layout object as last time means that no series came or went. A failure of a part is the source's
  // to report and leaves the rest; an error means that nothing could be read.
  virtual Result<std::shared_ptr<const Snapshot>> Collect() = 0;
};

}  // namespace persia::agent
