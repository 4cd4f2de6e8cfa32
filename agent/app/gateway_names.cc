#include "app/gateway_names.h"

#include <algorithm>

namespace persia::agent {

GatewayNames::GatewayNames(Options options) : options_(std::move(options)) {}

GatewayNames::~GatewayNames() { Stop(); }

void GatewayNames::Start(std::function<void()> changed) {
  changed_ = std::move(changed);
  thread_ = std::thread(&GatewayNames::Loop, this);
}

void GatewayNames::Stop() {
  {
    const std::lock_guard lock(mail_->mutex);
    stopping_ = true;
    mail_->wake.notify_all();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

void GatewayNames::Want(const std::set<std::string>& names) {
  const std::lock_guard lock(mail_->mutex);
  std::erase_if(names_, [&](const auto& known) { return !names.contains(known.first); });
  for (const std::string& name : names) {
    if (names_.try_emplace(name).second) {
      next_ = {};
      settled_ = false;
    }
  }
  mail_->wake.notify_all();
}

void GatewayNames::LookUpNow() {
  const std::lock_guard lock(mail_->mutex);
  for (auto& [name, known] : names_) {
    known.as_it_is = true;
  }
  next_ = {};
  mail_->wake.notify_all();
}

std::vector<std::string> GatewayNames::Addresses(const std::string& name) {
  const std::lock_guard lock(mail_->mutex);
  std::vector<std::string> addresses;
  if (const auto known = names_.find(name); known != names_.end()) {
    for (const auto& [address, seen] : known->second.addresses) {
      addresses.push_back(address);
    }
  }
  return addresses;
}

void GatewayNames::AwaitFirst(std::chrono::milliseconds limit) {
  std::unique_lock lock(mail_->mutex);
  mail_->wake.wait_for(lock, limit, [this] { return settled_ || stopping_ || names_.empty(); });
}

// Under the mutex. In a thread that nobody joins: a resolver without a server may hold it for half a minute.
void GatewayNames::Ask(const std::string& name) {
  Known& known = names_[name];
  if (std::exchange(known.asking, true)) {
    return;
  }
  try {
    std::thread([name, mail = mail_, look_up = options_.look_up] {
      Answer answer = look_up(name);
      const std::lock_guard lock(mail->mutex);
      mail->answers.emplace_back(name, std::move(answer));
      mail->wake.notify_all();
    }).detach();
  } catch (const std::system_error& error) {
    mail_->answers.emplace_back(name, Error{"no thread to look " + name + " up: " + error.what()});
  }
}

// Whether other addresses hold now.
bool GatewayNames::Take(Known& known, const Answer& answer) const {
  known.asking = false;
  known.answered = true;
  if (!answer.ok()) {
    return false;
  }
  const Clock::time_point now = options_.now();
  const bool as_it_is = std::exchange(known.as_it_is, false);
  const size_t before = known.addresses.size();
  for (const std::string& address : answer.value()) {
    known.addresses[address] = now;
  }
  const bool more = known.addresses.size() != before;
  const size_t gone = std::erase_if(known.addresses, [&](const auto& address) {
    return address.second != now && (as_it_is || now - address.second >= options_.gone_after);
  });
  return more || gone > 0;
}

void GatewayNames::Loop() {
  std::unique_lock lock(mail_->mutex);
  while (!stopping_) {
    if (!names_.empty() && options_.now() >= next_) {
      next_ = options_.now() + options_.every;
      for (const auto& [name, known] : names_) {
        Ask(name);
      }
    }
    bool changed = false;
    std::vector<std::pair<std::string, std::pair<std::string, bool>>> news;
    for (const auto& [name, answer] : std::exchange(mail_->answers, {})) {
      if (const auto known = names_.find(name); known != names_.end()) {
        changed = Take(known->second, answer) || changed;
        news.push_back({name, {answer.ok() ? "" : answer.error(), !known->second.addresses.empty()}});
      }
    }
    const bool all = std::all_of(names_.begin(), names_.end(), [](const auto& one) { return one.second.answered; });
    if (!news.empty()) {
      lock.unlock();
      for (const auto& [name, told] : news) {
        options_.told(name, told.first, told.second);
      }
      if (changed) {
        changed_();
      }
      lock.lock();
      settled_ = settled_ || all;
      mail_->wake.notify_all();
      continue;  // who called may want other names by now
    }
    const auto something = [this] {
      return stopping_ || !mail_->answers.empty() || (!names_.empty() && options_.now() >= next_);
    };
    mail_->wake.wait_for(lock,
                         names_.empty() ? options_.every : std::chrono::ceil<std::chrono::milliseconds>(next_ - options_.now()),
                         something);
  }
}

}  // namespace persia::agent
