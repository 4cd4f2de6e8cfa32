// Events of the job: of its processes, and of the agent.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"
#include "model/snapshot.h"

namespace persia::agent {

// An event that a process of the job recorded.
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

// The events by which the agent itself reports changes of the job: a worker that died, a rank that others wait for.
//
//   JobEvent event = LoggedAgentEvent(LogLevel::kWarning, "worker_died", "trainer rep_3 died: SIGKILL", now);
//   event.identity = process.identity;
//
// Their type is "persia.agent", and their metadata begin with `text`. Thread safety: any function, from any thread.
[[nodiscard]] JobEvent AgentEvent(std::string name, std::string text, std::chrono::system_clock::time_point now);
// With a line in the log, of which the event is `name` with a dot after its first word: "worker.died". REQUIRES: `level` is
// info or warning; `name` has two words or more.
[[nodiscard]] JobEvent LoggedAgentEvent(LogLevel level, std::string name, std::string text,
                                        std::chrono::system_clock::time_point now);

}  // namespace persia::agent
