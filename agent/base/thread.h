// Threads with names, as `ps -L`, `top -H` and gdb show them.
#pragma once

#include <pthread.h>

#include <string>
#include <thread>
#include <utility>

namespace persia::agent {

// Names the calling thread; the kernel keeps 15 bytes of the name.
inline void NameThread(const std::string& name) { pthread_setname_np(pthread_self(), name.substr(0, 15).c_str()); }

// Runs `work` in a new thread of that name. Throws std::system_error if the system cannot start one.
template <class Work>
std::thread StartThread(std::string name, Work work) {
  return std::thread([name = std::move(name), work = std::move(work)]() mutable {
    NameThread(name);
    work();
  });
}

}  // namespace persia::agent
