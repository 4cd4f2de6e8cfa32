// The metadata of families in a remote write 1.0 request: type, help and unit. Encoded by hand.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/snapshot.h"

namespace persia::agent {

struct MetadataRequest {
  std::string body{};  // before compression
  size_t families = 0;

  bool operator==(const MetadataRequest&) const = default;
};

// Requests of at most `max_families` families each. Families of one name count once.
[[nodiscard]] std::vector<MetadataRequest> EncodeMetadata(const Layout& layout, size_t max_families);

}  // namespace persia::agent
