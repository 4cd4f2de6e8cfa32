#include "fiber.h"

#include <utility>
#include <vector>

namespace persia::agent::model {
namespace {

constexpr size_t kStackBytes = 256 << 10;

constinit thread_local Fiber* current = nullptr;

// Stacks of former fibers: a new one would cost a map and its page faults.
std::vector<std::unique_ptr<std::byte[]>>& FreeStacks() {
  thread_local std::vector<std::unique_ptr<std::byte[]>> stacks;
  return stacks;
}

std::unique_ptr<std::byte[]> TakeStack() {
  auto& stacks = FreeStacks();
  if (stacks.empty()) return std::unique_ptr<std::byte[]>(new std::byte[kStackBytes]);
  auto stack = std::move(stacks.back());
  stacks.pop_back();
  return stack;
}

}  // namespace

Fiber::Fiber(std::function<void()> function) : function_(std::move(function)) {}

Fiber::~Fiber() {
  if (stack_ != nullptr) FreeStacks().push_back(std::move(stack_));
}

void Fiber::Resume() {
  if (!has_begun_) {
    has_begun_ = true;
    stack_ = TakeStack();
    getcontext(&own_);
    own_.uc_stack.ss_sp = stack_.get();
    own_.uc_stack.ss_size = kStackBytes;
    own_.uc_link = &caller_;
    makecontext(&own_, &Fiber::Begin, 0);
  }
  Fiber* const outer = std::exchange(current, this);
  swapcontext(&caller_, &own_);
  current = outer;
}

void Fiber::Yield() {
  Fiber* const self = current;
  swapcontext(&self->own_, &self->caller_);
}

void Fiber::Begin() {
  Fiber* const self = current;
  self->function_();
  self->has_ended_ = true;
}

}  // namespace persia::agent::model
