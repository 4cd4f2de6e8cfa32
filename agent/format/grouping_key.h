// The address of an identity's group on a PushGateway.
//
// Thread safety: a pure function.
#pragma once

#include <string>

#include "model/snapshot.h"

namespace persia::agent {

// "/metrics/job/<job>/<label>/<value>...", labels in the identity's order. Values are percent-encoded. A value that a path
// segment cannot hold (empty, with a slash, or "." and "..", which servers and proxies resolve) is written
// `<label>@base64/<URL-safe base64>`.
// REQUIRES: `job` is not empty: the gateway refuses an empty one.
std::string GroupingKeyPath(const Identity& identity);

}  // namespace persia::agent
