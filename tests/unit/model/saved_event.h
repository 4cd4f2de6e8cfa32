// An event record of a trainer.
#pragma once

#include <cstdint>
#include <string>

#include "model/events.h"

namespace persia::agent {

inline JobEvent SavedEvent(uint64_t unix_ms, const std::string& name = "saved", const std::string& type = "my_app") {
  return {.unix_ms = unix_ms,
          .type = type,
          .name = name,
          .metadata = {},
          .left_out = 0,
          .identity = {"dlrm", {{"role", "trainer"}}},
          .pid = 7};
}

}  // namespace persia::agent
