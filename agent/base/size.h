// Sizes as people write them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace persia::agent {

// A number of bytes ("1048576"), or a number with a unit, in any letter case: "10k", "1GB" are powers of 1000, "64MiB", "1.5Gi"
// powers of 1024. Rounded to whole bytes.
Result<uint64_t> ParseSize(std::string_view text);

}  // namespace persia::agent
