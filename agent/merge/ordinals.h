// Numbers the processes of an instance: 0, 1, ... A process keeps its number while it runs; a new process gets the lowest free
// number, so that the successor of an ended process gets the same number.
//
// Reserved numbers are kept as intervals, so that each call takes logarithmic time however many processes there are.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace persia::agent {

class Ordinals {
 public:
  using Key = std::pair<std::string, int32_t>;  // role, replica

  // Reserves the lowest free number of the instance.
  uint32_t ReserveLowest(const Key& instance) {
    const Intervals& reserved = reserved_[instance];
    const uint64_t number = reserved.empty() || reserved.begin()->first > 0 ? 0 : reserved.begin()->second;
    TryReserve(instance, static_cast<uint32_t>(number));
    return static_cast<uint32_t>(number);
  }
  // Reserves this number. False: it is not free.
  bool TryReserve(const Key& instance, uint32_t number) {
    Intervals& reserved = reserved_[instance];
    uint64_t end = uint64_t{number} + 1;
    const auto next = reserved.upper_bound(number);
    const auto before = next == reserved.begin() ? reserved.end() : std::prev(next);
    if (before != reserved.end() && before->second > number) return false;
    if (next != reserved.end() && next->first == end) {
      end = next->second;
      reserved.erase(next);
    }
    if (before != reserved.end() && before->second == number)
      before->second = end;
    else
      reserved.emplace(number, end);
    return true;
  }
  void Release(const Key& instance, uint32_t number) {
    const auto found = reserved_.find(instance);
    if (found == reserved_.end()) return;
    Intervals& reserved = found->second;
    auto interval = reserved.upper_bound(number);
    if (interval == reserved.begin() || (--interval)->second <= number) return;
    const auto [begin, end] = *interval;
    reserved.erase(interval);
    if (begin < number) reserved.emplace(begin, number);
    if (number + uint64_t{1} < end) reserved.emplace(number + uint64_t{1}, end);
    if (reserved.empty()) reserved_.erase(found);
  }

 private:
  using Intervals = std::map<uint64_t, uint64_t>;  // by the first number: one more than the last

  std::map<Key, Intervals> reserved_;
};

}  // namespace persia::agent
