// Runs a call that may hang, such as one on a network filesystem, in a separate thread.
//
//   BackgroundCall call("statvfs");                           // the thread's name
//   call.Start([path, answer] { answer->Set(Ask(path)); });   // shares what it touches
//   if (call.Await(100ms)) ...                                // most end at once
//
// At most one thread exists at a time. It may outlive this object. Thread safety: none.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace persia::agent {

class BackgroundCall {
 public:
  explicit BackgroundCall(std::string thread_name) : thread_name_(std::move(thread_name)) {}

  // False: the former call has not ended, or the system has no thread.
  bool Start(std::function<void()> call);
  // Whether it has ended. A call that has once been awaited in vain is not waited for again.
  bool Await(std::chrono::milliseconds patience);
  [[nodiscard]] bool runs() const;

 private:
  struct State {
    Mutex mutex;
    CondVar ended;
    bool runs PERSIA_GUARDED_BY(mutex) = false;
  };

  const std::string thread_name_;
  bool awaited_ = false;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace persia::agent
