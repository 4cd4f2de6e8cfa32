#include "push/pusher.h"

#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "kernel/background_call.h"

namespace persia::agent {

NameWatch::NameWatch(const std::string& host, Options options, std::function<void(bool known)> answered) {
  BackgroundCall lookups("name look-up");
  const bool began = lookups.Start([state = state_, host, options = std::move(options), answered = std::move(answered)] {
    for (;;) {
      const bool known = options.has_address(host);
      const MutexLock lock(state->mutex);
      if (state->stopped) return;
      answered(known);
      if (known) return;
      const auto next = std::chrono::steady_clock::now() + options.interval;
      while (!state->stopped && std::chrono::steady_clock::now() < next) state->wake.WaitUntil(state->mutex, next);
      if (state->stopped) return;
    }
  });
  if (began) return;
  LogWarning("gateway.name",
             "cannot start a thread to look up " + Quoted(host) + "; nothing is pushed until the settings are reloaded");
}

NameWatch::~NameWatch() {
  const MutexLock lock(state_->mutex);
  state_->stopped = true;
  state_->wake.NotifyAll();
}

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

Pusher::~Pusher() {
  {
    const MutexLock changing(changing_);
    watch_.reset();
  }
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    waiting_ = nullptr;
    wake_.NotifyOne();
    if (gateway_ != nullptr) gateway_->Interrupt();
  }
  thread_.join();
}

void Pusher::Start() {
  const MutexLock changing(changing_);
  started_ = true;
  thread_ = StartThread("push", [this] { Run(); });
  Watch();
}

void Pusher::Use(Target target) {
  const MutexLock changing(changing_);
  if (finished_) return;
  watch_.reset();
  {
    const MutexLock lock(mutex_);
    awaited_ = {};
    waiting_ = nullptr;
    const std::shared_ptr<PushGateway> former = std::exchange(gateway_, nullptr);
    if (busy_) former->Interrupt();
    while (busy_) idle_.Wait(mutex_);
    const bool is_awaited = !target.awaited_host.empty() && target.awaited_host != known_host_;
    SetGateway(is_awaited ? nullptr : target.gateway);
    if (is_awaited) awaited_ = std::move(target);
  }
  Watch();
}

void Pusher::TryAgain() {
  const MutexLock changing(changing_);
  if (finished_) return;
  {
    const MutexLock lock(mutex_);
    if (gateway_ != nullptr) gateway_->LiftQuarantine();
  }
  Watch();
}

// Looks the awaited host up, if there is one.
void Pusher::Watch() {
  watch_.reset();
  std::string host;
  {
    const MutexLock lock(mutex_);
    host = awaited_.awaited_host;
    host_has_answer_ = false;
  }
  if (host.empty() || !started_) return;
  watch_ = std::make_unique<NameWatch>(host, options_.look_up, [this](bool known) { HostAnswered(known); });
}

void Pusher::HostAnswered(bool known) {
  bool is_news = false;
  {
    const MutexLock lock(mutex_);
    host_has_answer_ = true;
    idle_.NotifyAll();
    if (known) {
      known_host_ = awaited_.awaited_host;
      SetGateway(std::exchange(awaited_, {}).gateway);
    } else {
      is_news = !std::exchange(missing_is_told_, true);
    }
  }
  if (is_news) options_.host_is_missing();
}

// REQUIRES: no push is running.
void Pusher::SetGateway(std::shared_ptr<PushGateway> gateway) {
  gateway_ = std::move(gateway);
  const std::string name = gateway_ == nullptr ? "" : gateway_->name();
  if (name != state_.gateway) {
    if (!state_.gateway.empty()) options_.own.RetireGateway(state_.gateway);
    if (!name.empty()) options_.own.AddGateway(name);
    state_ = {};
    state_.gateway = name;
    push_log_.emplace("push");
    slow_log_.emplace("push.slow");
  }
  if (gateway_ == nullptr) return;
  interrupted_ ? gateway_->Interrupt() : gateway_->Rearm();
  wake_.NotifyOne();
}

bool Pusher::Offer(std::shared_ptr<const Snapshot> snapshot) {
  const MutexLock lock(mutex_);
  if (finishing_ || (gateway_ != nullptr && !IsIdle())) return false;
  if (gateway_ == nullptr && awaited_.gateway == nullptr) return true;
  waiting_ = std::move(snapshot);
  wake_.NotifyOne();
  return true;
}

void Pusher::Enqueue(std::shared_ptr<const Snapshot> snapshot) {
  const MutexLock lock(mutex_);
  if (finishing_ || (gateway_ == nullptr && awaited_.gateway == nullptr)) return;
  waiting_ = std::move(snapshot);
  wake_.NotifyOne();
}

void Pusher::SetPace(Pace pace) {
  const MutexLock lock(mutex_);
  pace_ = pace;
}

Status Pusher::Finish(std::shared_ptr<const Snapshot> last) {
  const MutexLock changing(changing_);
  finished_ = true;
  {
    const MutexLock lock(mutex_);
    finishing_ = true;
    waiting_ = nullptr;
    const auto deadline = SteadyClock::now() + options_.answer_patience;
    while (awaited_.gateway != nullptr && !host_has_answer_ && !interrupted_ && SteadyClock::now() < deadline)
      idle_.WaitUntil(mutex_, deadline);
  }
  watch_.reset();
  {
    const MutexLock lock(mutex_);
    const bool in_time = WaitIdle(pace_.grace);
    if (!in_time && !interrupted_) gateway_->Rearm();
    const std::string former = state_.last_error;
    const bool away = !in_time || !former.empty();
    if (gateway_ != nullptr) waiting_ = std::move(last);
    ended_ = true;
    wake_.NotifyOne();
    if (!WaitIdle(away ? pace_.last_push_if_away : pace_.last_push) && !former.empty())
      state_.last_error = former;  // tells more than "interrupted"
  }
  thread_.join();
  const State state = this->state();
  return state.last_error.empty() ? Status(Done{}) : Status(Error{state.last_error});
}

// False: it interrupted a push after `limit`.
bool Pusher::WaitIdle(milliseconds limit) {
  const auto deadline = SteadyClock::now() + limit;
  while (!IsIdle() && !interrupted_ && SteadyClock::now() < deadline) idle_.WaitUntil(mutex_, deadline);
  if (IsIdle()) return true;
  gateway_->Interrupt();
  while (!IsIdle()) idle_.Wait(mutex_);
  return false;
}

Status Pusher::DeleteGroups(const std::string& job) {
  const MutexLock changing(changing_);
  std::shared_ptr<PushGateway> gateway;
  milliseconds limit{0};
  {
    const MutexLock lock(mutex_);
    if (gateway_ == nullptr) return Done{};
    gateway = gateway_;
    if (!interrupted_) gateway->Rearm();  // the last push may have been interrupted
    limit = state_.last_error.empty() ? pace_.last_push : pace_.last_push_if_away;
  }
  return gateway->DeleteGroups(job, limit);
}

void Pusher::Interrupt() {
  const MutexLock lock(mutex_);
  interrupted_ = true;
  idle_.NotifyAll();
  if (gateway_ != nullptr) gateway_->Interrupt();
}

Pusher::State Pusher::state() {
  const MutexLock lock(mutex_);
  return state_;
}

void Pusher::Run() {
  for (;;) {
    std::shared_ptr<PushGateway> gateway;
    const std::shared_ptr<const Snapshot> snapshot = Next(gateway);
    if (snapshot == nullptr) return;
    const auto began = SteadyClock::now();
    const Status status = gateway->Push(*snapshot);
    Report(gateway->name(), gateway->last_report(), status);
    PushDone(gateway->last_report(), status, SteadyClock::now() - began);
  }
}

// Waits for a gateway and a snapshot. Null: there will be none.
std::shared_ptr<const Snapshot> Pusher::Next(std::shared_ptr<PushGateway>& gateway) {
  const MutexLock lock(mutex_);
  while ((waiting_ == nullptr || gateway_ == nullptr) && !ended_) wake_.Wait(mutex_);
  gateway = gateway_;
  busy_ = waiting_ != nullptr;
  return std::exchange(waiting_, nullptr);
}

void Pusher::Report(const std::string& gateway, const PushReport& report, const Status& status) {
  OwnMetrics& own = options_.own;
  own.PushDone(gateway, ToString(report.result), report.duration.count(), report.bytes);
  if (report.result == PushResult::kDeferred) return;
  own.SetQuarantinedSeries("gateway", report.quarantined_series);
  own.SetDroppedSeries("push_bytes", report.dropped_series);
  own.SetGroups(report.ledger_groups);
  own.GroupsDeleted(report.groups_deleted);
  // The agent itself interrupts a push, to change its gateway or to end.
  if (report.result != PushResult::kInterrupted) Log(gateway, report, status);
}

void Pusher::Log(const std::string& gateway, const PushReport& report, const Status& status) {
  milliseconds interval{0};
  {
    const MutexLock lock(mutex_);
    if (finishing_) return;  // the caller of Finish reports the result
    interval = pace_.interval;
  }
  if (!status.ok()) {
    push_log_->Bad(ToString(report.result), "cannot push to " + status.error());
    return;
  }
  push_log_->Good("pushing to " + gateway);
  if (report.duration > interval)
    slow_log_->Bad("slow", "pushes to " + gateway + " take longer than the push interval; ticks are skipped");
  else
    slow_log_->Recovered("pushes take less than the push interval again");
}

void Pusher::PushDone(const PushReport& report, const Status& status, SteadyClock::duration took) {
  const MutexLock lock(mutex_);
  ++state_.pushes;
  state_.last_took = took;
  if (report.result != PushResult::kDeferred) {
    state_.groups = report.groups;
    state_.format = report.format;
  }
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
