// Runs tasks in parallel, each in a new thread. If the system cannot start a thread (pids.max, RLIMIT_NPROC), Run does
// the task itself: the agent must not abort for lack of a thread, since under `exec` the job's exit code would be lost with it.
//
//   TaskThreads tasks("push finish");   // the threads' name
//   tasks.Run([&] { ... });
//   tasks.Join();
//
// Thread safety: none.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace persia::agent {

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
