#include "app/beside.h"

#include <system_error>

namespace persia::agent {

void Beside::Run(const std::function<void()>& work) {
  try {
    threads_.emplace_back(work);
  } catch (const std::system_error&) {
    work();
  }
}

void Beside::Join() {
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

}  // namespace persia::agent
