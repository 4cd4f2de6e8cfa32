// What a program lets the library's system calls do. Thread safety: one thread runs at a time.
#pragma once

#include <ctime>

namespace persia::litmus {

struct Faults {
  bool is_full = false;      // the filesystem: a segment cannot grow
  time_t seconds_later = 0;  // than by the real clock

  static Faults& Get() {
    static Faults faults;
    return faults;
  }
};

}  // namespace persia::litmus
