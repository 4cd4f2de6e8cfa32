// Work that is done beside the caller's: each piece in a thread of its own, or, where the machine has no thread to give
// (pids.max, RLIMIT_NPROC), at once in the caller's. An agent must not end for want of a thread, and under exec the job's exit
// code with it.
//
//   Beside beside;
//   beside.Run([&] { ... });
//   ...
//   beside.Join();
//
// Thread safety: none.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace persia::agent {

class Beside {
 public:
  Beside() = default;
  ~Beside() { Join(); }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  void Run(const std::function<void()>& work);
  // All of it is done.
  void Join();

 private:
  std::vector<std::thread> threads_;
};

}  // namespace persia::agent
