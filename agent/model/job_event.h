// An event that a process of the job recorded.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/snapshot.h"

namespace persia::agent {

struct JobEvent {
  using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;

  uint64_t unix_ms = 0;
  std::string type;
  std::string name;
  std::vector<std::pair<std::string, Value>> metadata;
  uint32_t left_out = 0;  // metadata entries that did not fit into the record
  Identity identity;      // of the process: instance, ip_addr, role
  uint32_t pid = 0;       // in the process's own pid namespace

  bool operator==(const JobEvent&) const = default;
};

}  // namespace persia::agent
