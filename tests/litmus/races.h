// Finds plain accesses that race with an access of another thread, as ThreadSanitizer does, but for each order of the threads
// that a seed gives. Thread safety: as memory_model.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "memory_model.h"

namespace persia::litmus {

class Races {
 public:
  explicit Races(const Memory& memory) : memory_(memory) {}

  void Access(ThreadId by, const volatile void* address, size_t bytes, bool write, bool atomic);
  // The first race; empty: there is none.
  [[nodiscard]] const std::string& found() const { return found_; }

 private:
  // By their epoch; 0: none. Eight bytes that begin at a multiple of 8.
  struct Granule {
    struct Last {
      uint32_t epoch = 0;
      uint8_t bytes = 0;  // which of the eight
      bool atomic = false;
    };
    std::array<Last, kMaxThreads> writes = {};
    std::array<Last, kMaxThreads> reads = {};
  };

  void Check(ThreadId by, const Granule::Last& last, ThreadId other, uint8_t bytes, bool atomic, const char* what);

  const Memory& memory_;
  std::unordered_map<uintptr_t, Granule> granules_;
  std::string found_;
};

}  // namespace persia::litmus
