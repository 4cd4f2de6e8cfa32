#include "remote/send_progress.h"

#include <algorithm>
#include <utility>

namespace persia::agent {
namespace {

// Refusals that are told apart, and by how much of them.
constexpr size_t kMostTold = 32;
constexpr size_t kTellingBytes = 120;

// Times and counts differ from one refusal to the next.
std::string WithoutNumbers(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text.substr(0, kTellingBytes);
}

}  // namespace

void SendProgress::Try(uint64_t bytes, bool again) {
  const std::lock_guard lock(mutex_);
  counts_.bytes += bytes;
  counts_.retries += again ? 1 : 0;
}

void SendProgress::Sent(const QueueRecord& record) {
  const std::lock_guard lock(mutex_);
  counts_.samples_sent += record.samples;
  counts_.highest_sent_ms = std::max(counts_.highest_sent_ms, record.timestamp_ms);
  counts_.last_error.clear();
  if (std::exchange(failing_, false)) log_.note("remote.send", target_ + " takes samples again");
}

void SendProgress::Refused(const QueueRecord& record, const std::string& error) {
  const std::lock_guard lock(mutex_);
  counts_.samples_refused += record.samples;
  ++counts_.requests_refused;
  counts_.last_error = error;
  failing_ = false;  // it answers
  if (told_.size() < kMostTold && told_.insert(WithoutNumbers(error)).second) {
    log_.warn("remote.refused",
              target_ + " refuses " + std::to_string(record.samples) + " samples, which are dropped: " + error);
  }
}

void SendProgress::Failed(const std::string& error, TimePoint not_before) {
  const std::lock_guard lock(mutex_);
  counts_.last_error = error;
  not_before_ = std::max(not_before_, not_before);
  if (!stopped_ && !std::exchange(failing_, true)) {
    log_.warn("remote.send",
              "cannot send to " + target_ + ": " + error + "; what is collected waits on disk, and is sent when it can be");
  }
}

bool SendProgress::WaitUntil(TimePoint when) {
  std::unique_lock lock(mutex_);
  const uint64_t hurries = hurries_;
  for (;;) {
    const TimePoint until = std::max(hurries == hurries_ ? when : TimePoint{}, not_before_);
    if (stopped_ || until <= std::chrono::steady_clock::now()) return !stopped_;
    wake_.wait_until(lock, until);
  }
}

void SendProgress::HurryUp() {
  const std::lock_guard lock(mutex_);
  ++hurries_;
  wake_.notify_all();
}

void SendProgress::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  wake_.notify_all();
}

bool SendProgress::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

SendProgress::Counts SendProgress::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace persia::agent
