#include "base/thread.h"

#include <system_error>

namespace persia::agent {

void TaskThreads::Run(const std::function<void()>& task) {
  try {
    threads_.push_back(StartThread(name_, task));
  } catch (const std::system_error&) {
    task();
  }
}

void TaskThreads::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace persia::agent
