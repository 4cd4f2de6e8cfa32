// Numbers the processes of an instance: 0, 1, ... A process keeps its number while it runs; a new process gets the lowest free
// number, so that the successor of an ended process gets the same number.
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

  // Reserves the lowest free number of the instance.
  uint32_t ReserveLowest(const Key& instance) {
    std::set<uint32_t>& reserved = reserved_[instance];
    uint32_t number = 0;
    for (auto at = reserved.begin(); at != reserved.end() && *at == number; ++at) {
      ++number;
    }
    reserved.insert(number);
    return number;
  }
  // Reserves this number. False: it is not free.
  bool TryReserve(const Key& instance, uint32_t number) { return reserved_[instance].insert(number).second; }
  void Release(const Key& instance, uint32_t number) {
    const auto found = reserved_.find(instance);
    if (found != reserved_.end() && found->second.erase(number) > 0 && found->second.empty()) {
      reserved_.erase(found);
    }
  }

 private:
  std::map<Key, std::set<uint32_t>> reserved_;
};

}  // namespace persia::agent
