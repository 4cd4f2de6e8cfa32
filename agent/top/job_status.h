// What an agent's /api/v1/status says about its job, as `top` shows it.
//
//   Result<JobStatus> status = ParseJobStatus(body);   // the body may come from anything that listens at the address
//
// Thread safety: plain data and a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace persia::agent {

// The worst first.
enum class RankState : uint8_t { kDied, kHung, kSlow, kRunning, kStarting, kIdle, kExited };
// Whether the process lives.
[[nodiscard]] constexpr bool IsUp(RankState state) { return state != RankState::kDied && state != RankState::kExited; }
enum class ShownJobState : uint8_t { kFailed, kHung, kDegraded, kRunning, kWaiting, kFinished };

// A line: one process of one worker.
struct Rank {
  std::string role{};
  std::string instance{};
  std::string process{};
  RankState state = RankState::kRunning;
  std::optional<int64_t> since_ms{};
  uint64_t restarts = 0;
  std::optional<double> cpu_seconds{};
  std::optional<int64_t> start_ms{};
  std::optional<double> resident_bytes{};
  std::optional<double> throughput{};  // per second
  std::string last_exit{};
  bool is_rank = true;  // no launcher, and no further process of a rank

  // "trainer rep_2", with the number of the process if that is not 0.
  [[nodiscard]] std::string Name() const;
};

struct JobStatus {
  std::string job{};
  int64_t now_ms = 0;  // the agent's clock
  double push_interval = 10;
  ShownJobState state = ShownJobState::kRunning;
  std::optional<int64_t> since_ms{};
  // The agent's own words: "Failed, exit 3"; what is wrong, the worst first; what the job is like if nothing is.
  std::string title{};
  std::vector<std::string> reasons{};
  std::string text{};
  bool stands_still = false;  // a role of it, before a hang is judged
  // How fast the job is, as the page says it: "samples" and their number per second; empty: not known.
  std::string counted{};
  double per_second = 0;
  // How far the training is; empty: the agent does not know.
  std::optional<double> step{};
  std::optional<double> planned_steps{};
  std::optional<double> remaining_seconds{};
  std::vector<Rank> ranks{};
};

inline constexpr size_t kMaxRanks = 20'000;

// An error says why `body` is not the status of an agent.
Result<JobStatus> ParseJobStatus(std::string_view body);

const char* ToString(RankState state);
const char* ToString(ShownJobState state);

}  // namespace persia::agent
