#include "health/memory_kills.h"

#include <algorithm>

namespace persia::agent {
namespace {

// More kills are one event, in which the kernel ended a whole cgroup.
constexpr uint64_t kMostAtOnce = 10'000;

}  // namespace

void MemoryKills::Note(const std::string& source, uint64_t count, TimePoint now) {
  noted_[source] = now;
  const auto [found, is_new] = counts_.try_emplace(source, count);
  if (is_new) return;
  // A lower count is that of another cgroup with the same path, or of another boot.
  const uint64_t new_kills = count > found->second ? std::min(count - found->second, kMostAtOnce) : 0;
  found->second = count;
  if (new_kills > 0) waiting_[source].insert(waiting_[source].end(), new_kills, now);
}

bool MemoryKills::Take(const std::string& source, TimePoint now) {
  const auto found = waiting_.find(source);
  if (found == waiting_.end()) return false;
  std::deque<TimePoint>& kills = found->second;
  while (!kills.empty() && now - kills.front() > kPatience) kills.pop_front();
  if (kills.empty()) return false;
  kills.pop_front();
  return true;
}

void MemoryKills::DropBefore(TimePoint time) {
  std::erase_if(
      counts_,
      [&](const auto& count) {
        const auto noted = noted_.find(count.first);
        if (noted != noted_.end() && noted->second >= time) return false;
        waiting_.erase(count.first);
        noted_.erase(count.first);
        return true;
      });
}

}  // namespace persia::agent
