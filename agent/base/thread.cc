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

bool BackgroundCall::Start(std::function<void()> call) {
  const MutexLock lock(state_->mutex);
  if (state_->runs) return false;
  awaited_ = false;
  try {
    StartThread(thread_name_, [state = state_, call = std::move(call)] {
      call();
      const MutexLock end_lock(state->mutex);
      state->runs = false;
      state->ended.NotifyAll();
    }).detach();
    state_->runs = true;
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

bool BackgroundCall::Await(std::chrono::milliseconds patience) {
  const auto deadline =
      std::chrono::steady_clock::now() + (std::exchange(awaited_, true) ? std::chrono::milliseconds(0) : patience);
  const MutexLock lock(state_->mutex);
  while (state_->runs && std::chrono::steady_clock::now() < deadline) state_->ended.WaitUntil(state_->mutex, deadline);
  return !state_->runs;
}

bool BackgroundCall::runs() const {
  const MutexLock lock(state_->mutex);
  return state_->runs;
}

}  // namespace persia::agent
