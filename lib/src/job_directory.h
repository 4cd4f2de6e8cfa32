// Where a job's segments live, and the file in which its agent leaves word for its workers: shared by the library and the
// agent.
//
// `agent.conf` is lines of `key=value`: `enabled=0` or `enabled=1`, `run_id=<text>`, `job=<name>`. Unknown keys are skipped.
// The agent replaces the file by rename, so that no reader sees half of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace persia::metrics {

inline constexpr char kAgentConfName[] = "agent.conf";
inline constexpr char kDefaultJobName[] = "default";
inline constexpr char kDefaultRole[] = "worker";

// A job's name as one component of a path: letters, digits, '_' and '-', and '.' but for the first, stand for themselves; every
// other byte is %XX.
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

// The directory of `job` where none is configured: one for each user, in memory.
inline std::string DefaultMetricsDir(uint32_t uid, std::string_view job) {
  return "/dev/shm/persia-metrics-" + std::to_string(uid) + "/" + EncodeJobName(job);
}

}  // namespace persia::metrics
