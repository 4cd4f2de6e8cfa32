// A function with a separate stack. Resume() runs it until it yields or ends.
//
//   Fiber fiber([&] { ... Fiber::Yield(); ... });
//   while (!fiber.has_ended()) fiber.Resume();
//
// No exception may leave the function, and none may be in flight while it yields. Thread safety: a fiber belongs to the thread
// that created it.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace persia::agent::model {

class Fiber {
 public:
  explicit Fiber(std::function<void()> function);
  // REQUIRES: it has ended, or never began.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // REQUIRES: it has not ended; not within a fiber.
  void Resume();
  // Returns to the caller of Resume, until the next one. REQUIRES: within a fiber.
  static void Yield();
  [[nodiscard]] bool has_begun() const { return has_begun_; }
  [[nodiscard]] bool has_ended() const { return has_ended_; }

 private:
  static void Begin();

  const std::function<void()> function_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t own_{};
  ucontext_t caller_{};
  bool has_begun_ = false;
  bool has_ended_ = false;
};

}  // namespace persia::agent::model
