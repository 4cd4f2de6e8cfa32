#include "races.h"

#include <algorithm>

namespace persia::litmus {

void Races::Check(ThreadId by, const Granule::Last& last, ThreadId other, uint8_t bytes, bool atomic, const char* what) {
  if (other == by || last.epoch == 0 || (last.bytes & bytes) == 0 || (atomic && last.atomic)) return;
  if (memory_.HappenedBefore(other, last.epoch, by) || !found_.empty()) return;
  found_ = "a data race: thread " + std::to_string(by) + " accesses what thread " + std::to_string(other) + what +
           ", and nothing orders the two";
}

void Races::Access(ThreadId by, const volatile void* address, size_t bytes, bool write, bool atomic) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  for (uintptr_t at = begin & ~uintptr_t{7}; at < begin + bytes; at += 8) {
    const uintptr_t from = std::max(begin, at) - at;
    const uintptr_t to = std::min(begin + bytes, at + 8) - at;
    const auto mask = static_cast<uint8_t>((0xffU << from) & (0xffU >> (8 - to)));
    Granule& granule = granules_[at];
    for (ThreadId other = 0; other < kMaxThreads; ++other) {
      Check(by, granule.writes[other], other, mask, atomic, " wrote");
      if (write) Check(by, granule.reads[other], other, mask, atomic, " read");
    }
    Granule::Last& last = (write ? granule.writes : granule.reads)[by];
    const bool same = last.epoch == memory_.EpochOf(by) && last.atomic == atomic;
    last = {memory_.EpochOf(by), static_cast<uint8_t>(same ? last.bytes | mask : mask), atomic};
  }
}

}  // namespace persia::litmus
