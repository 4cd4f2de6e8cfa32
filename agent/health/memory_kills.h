// Which deaths the kernel's counts of kills for lack of memory explain.
//
//   MemoryKills kills;
//   kills.Restore(former_counts);
//   kills.Note("/sys/fs/cgroup/job", 3, now);       // in full collections, and before the ends of any one
//   if (kills.Take("/sys/fs/cgroup/job", now)) ...  // a process of that cgroup ended by SIGKILL: the kernel did it
//
// A count rises before the process ends, by some collections if it has much memory to give back. So a kill waits for its
// process for a minute. Each kill explains one death. Thread safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace persia::agent {

class MemoryKills {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kPatience{60};

  // The counts that a former agent has seen: kills since then are found, too. REQUIRES: before the first Note of a collection.
  void Restore(const std::map<std::string, uint64_t>& counts) {
    for (const auto& [source, count] : counts) sources_[source].count = count;
  }

  // The first count of a source that no agent has noted before is where counting begins.
  void Note(const std::string& source, uint64_t count, TimePoint now);
  // Whether a kill waits for its process.
  bool Waits(const std::string& source, TimePoint now);
  // The same; it is taken.
  bool Take(const std::string& source, TimePoint now);
  [[nodiscard]] bool IsKnown(const std::string& source) const { return sources_.contains(source); }
  // Drops the sources that were not noted since `time`: cgroups that were removed.
  void DropBefore(TimePoint time);
  [[nodiscard]] std::map<std::string, uint64_t> counts() const;

 private:
  struct Source {
    uint64_t count = 0;
    TimePoint at = TimePoint::min();     // when it was last noted
    std::deque<TimePoint> waiting = {};  // when each kill was found
  };

  std::map<std::string, Source> sources_;
};

}  // namespace persia::agent
