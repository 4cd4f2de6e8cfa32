#include "health/memory_kills.h"

#include <algorithm>

namespace persia::agent {
namespace {

// More kills are one event, in which the kernel ended a whole cgroup.
constexpr uint64_t kMostAtOnce = 10'000;

}  // namespace

void MemoryKills::Note(const std::string& source, uint64_t count, TimePoint now) {
  Source& noted = sources_.try_emplace(source, Source{.count = count}).first->second;
  // A lower count is that of another cgroup with the same path, or of another boot.
  const uint64_t new_kills = count > noted.count ? std::min(count - noted.count, kMostAtOnce) : 0;
  noted.count = count;
  noted.at = now;
  noted.waiting.insert(noted.waiting.end(), new_kills, now);
}

bool MemoryKills::Waits(const std::string& source, TimePoint now) {
  const auto found = sources_.find(source);
  if (found == sources_.end()) return false;
  std::deque<TimePoint>& kills = found->second.waiting;
  while (!kills.empty() && now - kills.front() > kPatience) kills.pop_front();
  return !kills.empty();
}

bool MemoryKills::Take(const std::string& source, TimePoint now) {
  if (!Waits(source, now)) return false;
  sources_.at(source).waiting.pop_front();
  return true;
}

void MemoryKills::DropBefore(TimePoint time) {
  std::erase_if(
      sources_, [&](const auto& source) { return source.second.at < time; });
}

std::map<std::string, uint64_t> MemoryKills::counts() const {
  std::map<std::string, uint64_t> counts;
  for (const auto& [name, source] : sources_) counts.emplace(name, source.count);
  return counts;
}

}  // namespace persia::agent
