// Programs that use the library (workload.h). Thread safety: one thread runs at a time.
#pragma once

#include <span>

#include "workload.h"

namespace persia::litmus {

struct Program {
  const char* name;
  void (*run)(const Workload& workload);
  bool is_small = false;  // all of its executions can be tried
  // What runs before the recording, and forks: the child goes on.
  void (*before_fork)(const Workload& workload) = nullptr;
};

std::span<const Program> Programs();

}  // namespace persia::litmus
