// Limits of a process, from /proc/<pid>/limits.
//
// Thread safety: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace persia::agent {

// None: no limit, or not known.
struct ProcessLimits {
  std::optional<uint64_t> cpu_seconds = {};
  std::optional<uint64_t> file_bytes = {};
  std::optional<uint64_t> open_files = {};
  std::optional<uint64_t> address_space = {};
};

// Of the text of the file; the soft limits.
[[nodiscard]] ProcessLimits ParseLimits(std::string_view text);

}  // namespace persia::agent
