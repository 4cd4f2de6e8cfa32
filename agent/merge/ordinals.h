// Numbers the processes of a rank: 0, 1, ... A process keeps its number while it runs; a new process gets the lowest free
// number, so that the successor of an ended process gets the same number.
//
// Reserved numbers are kept as intervals, so that each call takes logarithmic time however many processes there are.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "model/process_id.h"

namespace persia::agent {

class Ordinals {
 public:
  // Reserves the lowest free place of the rank.
  ProcessPlace ReserveLowest(const RankId& rank) {
    const Intervals& reserved = reserved_[rank];
    const uint64_t number = reserved.empty() || reserved.begin()->first > 0 ? 0 : reserved.begin()->second;
    ProcessPlace place{rank, static_cast<uint32_t>(number)};
    TryReserve(place);
    return place;
  }
  // False: it is not free.
  bool TryReserve(const ProcessPlace& place) {
    Intervals& reserved = reserved_[place.rank];
    const uint64_t number = place.ordinal;
    uint64_t end = number + 1;
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
  void Release(const ProcessPlace& place) {
    const auto found = reserved_.find(place.rank);
    if (found == reserved_.end()) return;
    Intervals& reserved = found->second;
    const uint64_t number = place.ordinal;
    auto interval = reserved.upper_bound(number);
    if (interval == reserved.begin() || (--interval)->second <= number) return;
    const auto [begin, end] = *interval;
    reserved.erase(interval);
    if (begin < number) reserved.emplace(begin, number);
    if (number + 1 < end) reserved.emplace(number + 1, end);
    if (reserved.empty()) reserved_.erase(found);
  }

 private:
  using Intervals = std::map<uint64_t, uint64_t>;  // by the first number: one more than the last

  std::map<RankId, Intervals> reserved_;
};

}  // namespace persia::agent
