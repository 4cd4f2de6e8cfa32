// A call in a thread of its own, of which a test can tell that it waits.
//
//   WaitingCall waiting([&] { return queue.Take(); });
//   EXPECT_TRUE(waiting.Waits());
//   ...  // what ends the wait
//   EXPECT_EQ(waiting.get(), 1);
//
// Thread safety: none.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

namespace persia {

template <class Call>
class WaitingCall {
 public:
  explicit WaitingCall(Call call)
      : result_(std::async(std::launch::async, [this, call = std::move(call)]() mutable {
          thread_ = gettid();
          return call();
        })) {}
  WaitingCall(const WaitingCall&) = delete;
  WaitingCall& operator=(const WaitingCall&) = delete;

  // Returns true once the thread sleeps until another one wakes it, false once the call has returned.
  bool Waits() {
    while (result_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      if (SleepsInAFutex()) return true;
      std::this_thread::yield();
    }
    return false;
  }

  auto get() { return result_.get(); }

 private:
  [[nodiscard]] bool SleepsInAFutex() const {
    if (thread_ == 0) return false;
    std::string call;  // "running", or the number of the system call
    std::ifstream("/proc/self/task/" + std::to_string(thread_) + "/syscall") >> call;
    return call == std::to_string(SYS_futex);
  }

  std::atomic<pid_t> thread_ = 0;
  std::future<std::invoke_result_t<Call&>> result_;
};

}  // namespace persia
