#include "gateways/pusher.h"

#include <utility>

#include "base/thread.h"

namespace persia::agent {

using SteadyClock = std::chrono::steady_clock;

Pusher::Pusher(std::shared_ptr<PushSink> sink, PushReports& reports, Limits limits)
    : name_(sink->name()), reports_(reports), sink_(std::move(sink)), limits_(limits) {}

Pusher::~Pusher() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    waiting_ = nullptr;
    wake_.NotifyOne();
    sink_->Interrupt();
  }
  thread_.join();
}

std::shared_ptr<PushSink> Pusher::sink() {
  const MutexLock lock(mutex_);
  return sink_;
}

void Pusher::Start() {
  thread_ = StartThread("push " + name_, [this] { Run(); });
}

bool Pusher::Offer(std::shared_ptr<const Snapshot> snapshot) {
  const MutexLock lock(mutex_);
  if (!IsIdle() || held_ || finishing_) return false;
  waiting_ = std::move(snapshot);
  wake_.NotifyOne();
  return true;
}

void Pusher::Enqueue(std::shared_ptr<const Snapshot> snapshot) {
  const MutexLock lock(mutex_);
  if (held_ || finishing_) return;
  waiting_ = std::move(snapshot);
  wake_.NotifyOne();
}

void Pusher::Hold() {
  const MutexLock lock(mutex_);
  held_ = true;
  waiting_ = nullptr;
  while (busy_) idle_.Wait(mutex_);
}

void Pusher::Release(std::shared_ptr<PushSink> sink) {
  const MutexLock lock(mutex_);
  sink_ = std::move(sink);
  if (interrupted_) {
    sink_->Interrupt();
  } else {
    sink_->Rearm();
  }
  held_ = false;
}

void Pusher::SetLimits(Limits limits) {
  const MutexLock lock(mutex_);
  limits_ = limits;
}

Status Pusher::Finish(std::shared_ptr<const Snapshot> last) {
  {
    const MutexLock lock(mutex_);
    finishing_ = true;
    waiting_ = nullptr;
    const bool in_time = WaitIdle(limits_.grace);
    if (!in_time && !interrupted_) sink_->Rearm();
    const std::string former = state_.last_error;
    const bool away = !in_time || !former.empty();
    waiting_ = std::move(last);
    ended_ = true;
    wake_.NotifyOne();
    if (!WaitIdle(away ? limits_.last_push_if_away : limits_.last_push) && !former.empty()) {
      state_.last_error = former;  // tells more than "interrupted"
    }
  }
  thread_.join();
  const State state = this->state();
  return state.last_error.empty() ? Status(Done{}) : Status(Error{state.last_error});
}

// False: it interrupted a push after `limit`.
bool Pusher::WaitIdle(std::chrono::milliseconds limit) {
  const auto deadline = SteadyClock::now() + limit;
  while (!IsIdle() && !interrupted_ && SteadyClock::now() < deadline) idle_.WaitUntil(mutex_, deadline);
  if (IsIdle()) return true;
  sink_->Interrupt();
  while (!IsIdle()) idle_.Wait(mutex_);
  return false;
}

void Pusher::Interrupt() {
  const MutexLock lock(mutex_);
  interrupted_ = true;
  idle_.NotifyAll();
  sink_->Interrupt();
}

Pusher::State Pusher::state() {
  const MutexLock lock(mutex_);
  return state_;
}

void Pusher::Run() {
  while (const std::shared_ptr<const Snapshot> snapshot = Next()) {
    const std::shared_ptr<PushSink> sink = this->sink();
    const auto began = SteadyClock::now();
    const Status status = sink->Push(*snapshot);
    reports_.Add(name_, sink->last_report(), status);
    PushDone(status, SteadyClock::now() - began);
  }
}

// Waits for a snapshot. Null: there will be none.
std::shared_ptr<const Snapshot> Pusher::Next() {
  const MutexLock lock(mutex_);
  while (waiting_ == nullptr && !ended_) wake_.Wait(mutex_);
  busy_ = waiting_ != nullptr;
  return std::exchange(waiting_, nullptr);
}

void Pusher::PushDone(const Status& status, SteadyClock::duration took) {
  const MutexLock lock(mutex_);
  ++state_.pushes;
  state_.last_took = took;
  if (status.ok()) {
    state_.last_success = std::chrono::system_clock::now();
    state_.last_success_steady = SteadyClock::now();
    state_.last_error.clear();
  } else {
    ++state_.failed;
    state_.last_error = status.error();
  }
  busy_ = false;
  idle_.NotifyAll();
}

}  // namespace persia::agent
