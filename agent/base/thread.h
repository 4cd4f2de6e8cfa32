// Threads with names, as `ps -L`, `top -H` and gdb show them.
#pragma once

#include <pthread.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

// Runs tasks in parallel, each in a new thread. If the system cannot start a thread (pids.max, RLIMIT_NPROC), Run does
// the task itself: the agent must not abort for lack of a thread, since under `exec` the job's exit code would be lost with it.
//
//   TaskThreads tasks("push finish");   // the threads' name
//   tasks.Run([&] { ... });
//   tasks.Join();
//
// Thread safety: none.
class TaskThreads {
 public:
  explicit TaskThreads(std::string name) : name_(std::move(name)) {}
  ~TaskThreads() { Join(); }
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  void Run(const std::function<void()>& task);
  // Waits for all tasks.
  void Join();

 private:
  const std::string name_;
  std::vector<std::thread> threads_;
};

}  // namespace persia::agent
