// The deaths of a run, and what the next agent needs to report each of them once.
//
//   std::string bytes = EncodeDeaths(memory);      // into the state of the run
//   std::optional<DeathMemory> memory = DecodeDeaths(bytes);
//
// ../ledger/state_format.md has the encoding. Thread safety: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "health/deaths.h"
#include "model/process_end.h"

namespace persia::agent {

struct DeathMemory {
  static constexpr size_t kMaxDeaths = 100;
  static constexpr size_t kMaxUntold = 4096;

  std::vector<Death> deaths = {};               // by their times, those of one collection and the next; at most kMaxDeaths
  std::vector<ProcessEnd> untold = {};          // ends whose reason is not known yet
  std::array<uint64_t, kDeathCauses> totals{};  // all deaths of the run, by cause
  std::map<std::string, uint64_t> kills = {};   // the kernel's counts of kills for lack of memory, as far as reported

  friend bool operator==(const DeathMemory&, const DeathMemory&) = default;
};

[[nodiscard]] std::string EncodeDeaths(const DeathMemory& memory);
// None: the bytes are malformed.
[[nodiscard]] std::optional<DeathMemory> DecodeDeaths(std::string_view bytes);

}  // namespace persia::agent
