// Numbers the processes of an instance: 0, 1, ... A process keeps its number while it is there; a new one takes the lowest that
// is free, so that who comes after another takes its place.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace persia::agent {

class Ordinals {
 public:
  using Key = std::pair<std::string, int32_t>;  // role, replica

  // The lowest free number of the instance, which is taken from now on.
  uint32_t Take(const Key& instance) {
    std::set<uint32_t>& taken = taken_[instance];
    uint32_t number = 0;
    for (auto at = taken.begin(); at != taken.end() && *at == number; ++at) {
      ++number;
    }
    taken.insert(number);
    return number;
  }
  // This number, if it is free; false: it is not.
  bool TakeThis(const Key& instance, uint32_t number) { return taken_[instance].insert(number).second; }
  void GiveBack(const Key& instance, uint32_t number) {
    const auto found = taken_.find(instance);
    if (found != taken_.end() && found->second.erase(number) > 0 && found->second.empty()) {
      taken_.erase(found);
    }
  }

 private:
  std::map<Key, std::set<uint32_t>> taken_;
};

}  // namespace persia::agent
