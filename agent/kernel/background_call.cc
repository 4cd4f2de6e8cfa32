#include "kernel/background_call.h"

#include <system_error>

#include "base/thread.h"

namespace persia::agent {

bool BackgroundCall::Start(std::function<void()> call) {
  const MutexLock lock(state_->mutex);
  if (state_->runs) return false;
  awaited_ = false;
  try {
    StartThread(thread_name_, [state = state_, call = std::move(call)]() mutable {
      call();
      call = nullptr;  // what only it holds is gone when its end is known
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
