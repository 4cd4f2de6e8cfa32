#include "base/log_limiter.h"

#include <algorithm>
#include <utility>

namespace persia::agent {

LogLimiter::LogLimiter(Options options) : options_(std::move(options)) {}

bool LogLimiter::Admit(std::string_view event, int severity, std::string_view message) {
  const TimePoint now = options_.now();
  const MutexLock lock(mutex_);
  auto found = buckets_.find(event);
  if (found == buckets_.end()) {
    const std::string_view name = buckets_.size() < options_.max_events ? event : "other";
    found = buckets_.try_emplace(std::string(name), Bucket{.tokens = static_cast<double>(options_.burst), .filled = now}).first;
  }
  Bucket& bucket = found->second;
  const double added = std::chrono::duration<double>(now - bucket.filled) / std::chrono::duration<double>(options_.refill);
  bucket.tokens = std::min(bucket.tokens + added, static_cast<double>(options_.burst));
  bucket.filled = now;
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return true;
  }
  Flood& flood = bucket.flood;
  if (flood.lines == 0) {
    bucket.flood_began = now;
    flood.event = found->first;
  }
  bucket.flood_last = now;
  ++flood.lines;
  ++suppressed_;
  flood.severity = std::max(flood.severity, severity);
  flood.last_message = message;
  return false;
}

std::vector<LogLimiter::Flood> LogLimiter::TakeEnded() { return Take(options_.idle); }
std::vector<LogLimiter::Flood> LogLimiter::TakeAll() { return Take(std::chrono::seconds(0)); }

std::vector<LogLimiter::Flood> LogLimiter::Take(std::chrono::seconds idle) {
  const TimePoint now = options_.now();
  const MutexLock lock(mutex_);
  std::vector<Flood> ended;
  for (auto& [event, bucket] : buckets_) {
    if (bucket.flood.lines > 0 && now - bucket.flood_last >= idle) {
      bucket.flood.duration = std::chrono::duration_cast<std::chrono::seconds>(bucket.flood_last - bucket.flood_began);
      ended.push_back(std::exchange(bucket.flood, {}));
    }
  }
  return ended;
}

uint64_t LogLimiter::suppressed() const {
  const MutexLock lock(mutex_);
  return suppressed_;
}

}  // namespace persia::agent
