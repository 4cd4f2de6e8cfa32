#include "app/log_limiter.h"

#include <algorithm>
#include <utility>

namespace persia::agent {
namespace {

constexpr std::string_view kOther = "other";

}  // namespace

LogLimiter::LogLimiter(Options options) : options_(std::move(options)) {}

bool LogLimiter::Admit(std::string_view event, int severity, std::string_view message) {
  const TimePoint now = options_.now();
  const std::lock_guard lock(mutex_);
  auto found = buckets_.find(event);
  if (found == buckets_.end()) {
    const std::string_view name = buckets_.size() < options_.max_events ? event : kOther;
    found = buckets_.try_emplace(std::string(name), Bucket{.lines = static_cast<double>(options_.burst), .filled = now}).first;
  }
  Bucket& bucket = found->second;
  const double more = std::chrono::duration<double>(now - bucket.filled) / std::chrono::duration<double>(options_.refill);
  bucket.lines = std::min(bucket.lines + more, static_cast<double>(options_.burst));
  bucket.filled = now;
  if (bucket.lines >= 1) {
    bucket.lines -= 1;
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
  flood.last = message;
  return false;
}

std::vector<LogLimiter::Flood> LogLimiter::TakeEnded() { return Take(options_.quiet); }
std::vector<LogLimiter::Flood> LogLimiter::TakeAll() { return Take(std::chrono::seconds(0)); }

std::vector<LogLimiter::Flood> LogLimiter::Take(std::chrono::seconds quiet) {
  const TimePoint now = options_.now();
  const std::lock_guard lock(mutex_);
  std::vector<Flood> ended;
  for (auto& [event, bucket] : buckets_) {
    if (bucket.flood.lines > 0 && now - bucket.flood_last >= quiet) {
      bucket.flood.lasted = std::chrono::duration_cast<std::chrono::seconds>(bucket.flood_last - bucket.flood_began);
      ended.push_back(std::exchange(bucket.flood, {}));
    }
  }
  return ended;
}

uint64_t LogLimiter::suppressed() const {
  const std::lock_guard lock(mutex_);
  return suppressed_;
}

}  // namespace persia::agent
