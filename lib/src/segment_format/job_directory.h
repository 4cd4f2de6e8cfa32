// The directory of a job's segments, and its file `agent.conf`, by which the agent configures the job's workers. Shared by the
// library and the agent.
//
// `agent.conf` has lines of `key=value`: `enabled=0` or `enabled=1`, `run_id=<text>`, `job=<name>`, `ended=1` once the run has
// ended, and, if `exec` started the job, `starter=<process>` and `command=<hash>`, and, if the agent serves a page,
// `web=<URL>`, and, with `state_dir`, `state_replica=<number>` in the names of the files there. `attempt=<number>` counts the
// `exec` of the run, one after another, and `run_began=<seconds>` is since 1970. Unknown keys are skipped. The agent replaces
// the file by rename, so a reader never sees a part of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace persia::metrics {

inline constexpr char kAgentConfName[] = "agent.conf";
inline constexpr char kDefaultJobName[] = "default";
inline constexpr char kDefaultRole[] = "worker";

// A job's name as a component of a path. Letters, digits, '_', '-', and '.' except as the first character are kept; every other
// byte becomes %XX.
inline std::string EncodeJobName(std::string_view job) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : job) {
    const auto byte = static_cast<uint8_t>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                       (c == '.' && !out.empty());
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

// The default directory of `job`: in memory, one for each user.
inline std::string DefaultMetricsDir(uint32_t uid, std::string_view job) {
  return "/dev/shm/persia-metrics-" + std::to_string(uid) + "/" + EncodeJobName(job);
}

}  // namespace persia::metrics
