// A rank's processes with known times, as an agent reads them: their clocks run until a moment at which they were alive.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "health/goodput.h"
#include "model/ends.h"
#include "model/process.h"

namespace persia::agent {

inline const MachineClocks kClocks{.boot_id = "boot", .zero = std::chrono::seconds(1'000'000)};

inline std::chrono::nanoseconds Sum(const BucketTimes& time) {
  return std::accumulate(time.begin(), time.end(), std::chrono::nanoseconds(0));
}

struct KnownProcess {
  using Nanoseconds = std::chrono::nanoseconds;
  static constexpr Nanoseconds kNever = Nanoseconds::max();
  struct Stretch {
    std::string phase;
    Nanoseconds from;
  };

  RankId rank{"trainer", 0};
  std::string id;
  uint32_t pid = 0;
  Nanoseconds began{0};
  std::vector<Stretch> stretches = {};  // one follows the other, until the end
  std::vector<std::pair<Nanoseconds, double>> steps = {};
  bool numbers = true;  // false: it only counts them
  Nanoseconds ended = kNever;
  std::string exit = "SIGKILL";
  // Of a program that exec started: when it began to record.
  std::optional<Nanoseconds> recorded = {};
  // Of a program that ended by exec: when the next one began to record.
  std::optional<Nanoseconds> replaced = {};
  // Before that, it was another rank.
  std::optional<Nanoseconds> renamed = {};
  RankId first_rank{"trainer", 9};
  bool was_alive = false;                 // at a look
  std::optional<Nanoseconds> stood = {};  // its clocks, since it was found without its program

  [[nodiscard]] Nanoseconds Recorded() const { return recorded.value_or(began); }
  [[nodiscard]] bool AliveAt(Nanoseconds now) const { return now < replaced.value_or(ended); }
  [[nodiscard]] bool IsClean() const { return exit == "exit_0"; }

  // As a look at `now` finds it, whose clocks run until `seen`.
  Process Read(Nanoseconds now, Nanoseconds seen) {
    constexpr uint64_t kTickNs = 10'000'000;
    const uint64_t ticks = static_cast<uint64_t>(began.count()) / kTickNs;
    Process read{.id = {.pid = pid, .start_ticks = ticks},
                 .rank = renamed && now < *renamed ? first_rank : rank,
                 .segment_id = id,
                 .alive = AliveAt(now),
                 .began = began};
    read.birth_unix_ns = static_cast<uint64_t>(Recorded().count());
    if (replaced && now >= ended) {
      read.runs_other = read.alive || stood;
      seen = *(stood = stood.value_or(seen));
    }
    was_alive = was_alive || read.alive;
    const bool exited = !read.alive && IsClean();  // its clocks were stopped
    std::map<std::string, Nanoseconds> phases;
    for (size_t i = 0; i < stretches.size() && stretches[i].from <= std::min(now, ended); ++i) {
      const bool is_last = i + 1 == stretches.size() || stretches[i + 1].from > std::min(now, ended);
      Nanoseconds until = is_last ? std::max(was_alive ? seen : Nanoseconds(0), stretches[i].from) : stretches[i + 1].from;
      if (is_last && exited) until = ended;
      if (is_last && !exited) {
        read.clocks_until = until;
        read.phase = stretches[i].phase;
      }
      phases[stretches[i].phase] += until - stretches[i].from;
      read.last_mark = is_last && exited ? ended : stretches[i].from;
    }
    read.phases.assign(phases.begin(), phases.end());
    for (const auto& [at, step] : steps) {
      if (at > std::min(now, ended)) break;
      if (!read.first_step) read.first_step = step;
      read.step = step;
    }
    if (!numbers) {
      read.first_step.reset();
    }
    if (!read.alive) read.last_exit = replaced ? std::string(kReplacedProgram) : exit;
    return read;
  }
};

}  // namespace persia::agent
