#include "gateways/gateway_names.h"

#include <algorithm>
#include <system_error>

#include "base/thread.h"

namespace persia::agent {

using std::chrono::milliseconds;

void GatewayNames::Start(std::function<void()> changed) {
  changed_ = std::move(changed);
  thread_ = StartThread("gateway names", [this] { Run(); });
}

void GatewayNames::Stop() {
  {
    const MutexLock lock(answers_->mutex);
    stopping_ = true;
    answers_->wake.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void GatewayNames::SetNames(const std::set<std::string>& names) {
  const MutexLock lock(answers_->mutex);
  std::erase_if(names_, [&](const auto& name) { return !names.contains(name.first); });
  for (const std::string& name : names) {
    if (!names_.try_emplace(name).second) continue;
    next_ = {};
    settled_ = false;
  }
  answers_->wake.NotifyAll();
}

void GatewayNames::LookUpNow() {
  const MutexLock lock(answers_->mutex);
  for (auto& [name, state] : names_) {
    state.drops_at_once = true;
    state.is_outdated = state.in_progress;
  }
  next_ = {};
  answers_->wake.NotifyAll();
}

std::vector<std::string> GatewayNames::Addresses(const std::string& name) {
  const MutexLock lock(answers_->mutex);
  std::vector<std::string> addresses;
  if (const auto found = names_.find(name); found != names_.end()) {
    for (const auto& [address, seen] : found->second.addresses) addresses.push_back(address);
  }
  return addresses;
}

void GatewayNames::AwaitFirst(milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  const MutexLock lock(answers_->mutex);
  while (!settled_ && !stopping_ && !names_.empty() && Clock::now() < deadline) {
    answers_->wake.WaitUntil(answers_->mutex, deadline);
  }
}

// In a detached thread, since a resolver without a server may take half a minute.
void GatewayNames::StartLookUp(const std::string& name) {
  if (std::exchange(names_[name].in_progress, true)) return;
  try {
    StartThread("name look-up", [name, answers = answers_, look_up = options_.look_up] {
      Answer answer = look_up(name);
      const MutexLock lock(answers->mutex);
      answers->waiting.emplace_back(name, std::move(answer));
      answers->wake.NotifyAll();
    }).detach();
  } catch (const std::system_error& error) {
    answers_->waiting.emplace_back(name, Error{"cannot start a thread to look up " + name + ": " + error.what()});
  }
}

// Whether the addresses changed.
bool GatewayNames::Update(Name& name, const Answer& answer) const {
  name.in_progress = false;
  name.answered = true;
  const bool is_outdated = std::exchange(name.is_outdated, false);
  if (!answer.ok()) return false;
  const Clock::time_point now = options_.now();
  const bool drops_at_once = !is_outdated && std::exchange(name.drops_at_once, false);
  const size_t before = name.addresses.size();
  for (const std::string& address : answer.value()) name.addresses[address] = now;
  const bool more = name.addresses.size() != before;
  const size_t gone = std::erase_if(name.addresses, [&](const auto& address) {
    return address.second != now && (drops_at_once || now - address.second >= options_.forget_after);
  });
  return more || gone > 0;
}

GatewayNames::News GatewayNames::TakeAnswers() {
  News news;
  for (const auto& [name, answer] : std::exchange(answers_->waiting, {})) {
    const auto found = names_.find(name);
    if (found == names_.end()) continue;
    if (found->second.is_outdated) next_ = {};
    news.changed = Update(found->second, answer) || news.changed;
    news.events.push_back({name, answer.ok() ? "" : answer.error(), !found->second.addresses.empty()});
  }
  news.all_answered = std::all_of(names_.begin(), names_.end(), [](const auto& name) { return name.second.answered; });
  return news;
}

// Starts the lookups that are due, and waits for answers. Nothing: Stop was called.
std::optional<GatewayNames::News> GatewayNames::AwaitNews() {
  const MutexLock lock(answers_->mutex);
  while (!stopping_) {
    if (!names_.empty() && options_.now() >= next_) {
      next_ = options_.now() + options_.interval;
      for (const auto& [name, state] : names_) StartLookUp(name);
    }
    News news = TakeAnswers();
    if (!news.events.empty()) return news;
    const auto pause = names_.empty() ? options_.interval : std::chrono::ceil<milliseconds>(next_ - options_.now());
    answers_->wake.WaitUntil(answers_->mutex, Clock::now() + pause);
  }
  return std::nullopt;
}

void GatewayNames::Run() {
  while (const std::optional<News> news = AwaitNews()) {
    for (const Event& event : news->events) options_.answered(event.name, event.error, event.known);
    if (news->changed) changed_();
    const MutexLock lock(answers_->mutex);
    settled_ = settled_ || news->all_answered;
    answers_->wake.NotifyAll();
  }
}

}  // namespace persia::agent
