#include "base/log.h"

#include <limits.h>
#include <poll.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace persia::agent {
namespace {

struct Output {
  std::shared_ptr<spdlog::logger> logger;
  LogFormat format = LogFormat::kText;
};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// spdlog's own time is a count of nanoseconds, which ends in 2262, and has a wrong millisecond before 1970.
class TimeFlag : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& /*message*/, const std::tm& /*time*/, spdlog::memory_buf_t& out) override {
    struct timespec now {};
    clock_gettime(CLOCK_REALTIME, &now);
    const std::string text = LogTime(now);
    out.append(text.data(), text.data() + text.size());
  }
  [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<TimeFlag>(); }
};

// A reader of stderr that hangs, such as a pager or a container's runtime, must not stop the agent. It is waited for once: the
// lines that it does not take until it reads again are lost.
constexpr int kPatienceMilliseconds = 200;
std::atomic<bool> reader_hangs = false;
std::atomic<uint64_t> lines_lost = 0;

std::atomic<uint64_t> lines_written[spdlog::level::n_levels];

class StderrSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    for (size_t at = 0; at < line.size();) {
      pollfd out{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
      if (poll(&out, 1, reader_hangs ? 0 : kPatienceMilliseconds) == 0) {
        reader_hangs = true;
        ++lines_lost;
        return;
      }
      reader_hangs = false;
      // Not more than a pipe that can be written to takes at once.
      const ssize_t size = write(STDERR_FILENO, line.data() + at, std::min<size_t>(line.size() - at, PIPE_BUF));
      if (size < 0 && errno != EINTR) return;
      at += size > 0 ? static_cast<size_t>(size) : 0;
    }
    lines_written[message.level].fetch_add(1, std::memory_order_relaxed);  // a count, which orders nothing
  }
  void flush_() override {}
};

std::shared_ptr<const Output> MakeOutput(LogLevel level, LogFormat format) {
  auto output = std::make_shared<Output>();
  output->format = format;
  output->logger = std::make_shared<spdlog::logger>("persia-metrics-agent", std::make_shared<StderrSink>());
  output->logger->set_level(ToSpdlog(level));
  output->logger->set_error_handler([](const std::string&) {});  // a write error on stderr is not reported on stderr
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<TimeFlag>('*').set_pattern(format == LogFormat::kJson ? R"({"time":"%*","level":"%l",%v)"
                                                                            : "%* %n %l: %v");
  output->logger->set_formatter(std::move(formatter));
  return output;
}

struct Destination {
  std::shared_ptr<const Output> output;
  std::shared_ptr<LogLimiter> limiter;
};

class Destinations {
 public:
  Destination current() {
    const MutexLock lock(mutex_);
    return current_;
  }
  void set_output(std::shared_ptr<const Output> output) {
    const MutexLock lock(mutex_);
    current_.output = std::move(output);
  }
  void set_limiter(std::shared_ptr<LogLimiter> limiter) {
    const MutexLock lock(mutex_);
    current_.limiter = std::move(limiter);
  }

 private:
  Mutex mutex_;
  Destination current_ PERSIA_GUARDED_BY(mutex_) = {MakeOutput(LogLevel::kInfo, LogFormat::kText), nullptr};
};

// Never destroyed: threads may log until the process exits.
Destinations& Log() {
  static auto* const log = new Destinations;
  return *log;
}

constexpr spdlog::level::level_enum kCountedLevels[] = {spdlog::level::info, spdlog::level::warn, spdlog::level::err};

void WriteLine(const Output& output, spdlog::level::level_enum level, std::string_view event, std::string_view message) {
  // The pattern has the opening brace.
  const std::string line =
      output.format == LogFormat::kJson ? WriteJson({{"event", event}, {"message", message}}).substr(1) : OneLine(message);
  output.logger->log(level, spdlog::string_view_t(line.data(), line.size()));
}

// After a line, since only that tells whether stderr is read again.
void WriteLost(const Output& output) {
  if (reader_hangs || lines_lost == 0) return;
  WriteLine(output, spdlog::level::warn, "log.lost",
            std::to_string(lines_lost.exchange(0)) + " log lines were lost, because nothing read stderr");
}

void WriteFloods(const Output& output, const std::vector<LogLimiter::Flood>& floods) {
  for (const LogLimiter::Flood& flood : floods) {
    const bool is_one = flood.lines == 1;
    const std::string time = flood.duration.count() > 0 ? " in " + std::to_string(flood.duration.count()) + " s" : "";
    WriteLine(output, static_cast<spdlog::level::level_enum>(flood.severity), flood.event,
              std::to_string(flood.lines) + (is_one ? " more line of " : " more lines of ") + flood.event +
                  (is_one ? " was" : " were") + " left out" + time + (is_one ? "; it said: " : "; the last said: ") +
                  flood.last_message);
  }
}

enum class Limit : uint8_t { kPerEvent, kNone };

void Write(spdlog::level::level_enum level, std::string_view event, std::string_view message, Limit limit = Limit::kPerEvent) {
  const auto [output, limiter] = Log().current();
  if (!output->logger->should_log(level)) return;
  if (limiter != nullptr && level > spdlog::level::debug) {
    WriteFloods(*output, limiter->TakeEnded());
    if (limit == Limit::kPerEvent && !limiter->Admit(event, level, message)) return;
  }
  WriteLine(*output, level, event, message);
  WriteLost(*output);
}

std::string WholeSeconds(std::chrono::steady_clock::duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

}  // namespace

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

std::string LogTime(const struct timespec& time) {
  std::tm local{};
  if (localtime_r(&time.tv_sec, &local) == nullptr) return std::to_string(time.tv_sec);  // a year beyond 2^31
  char text[64];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local);
  const long minutes = std::labs(local.tm_gmtoff) / 60;
  std::snprintf(text + size, sizeof text - size, ".%03ld%c%02ld:%02ld", time.tv_nsec / 1'000'000,
                local.tm_gmtoff < 0 ? '-' : '+', minutes / 60, minutes % 60);
  return text;
}

void SetUpLog(LogLevel level, LogFormat format) { Log().set_output(MakeOutput(level, format)); }

void SetLogLimiter(std::shared_ptr<LogLimiter> limiter) { Log().set_limiter(std::move(limiter)); }

std::vector<std::pair<std::string_view, uint64_t>> LogLinesWritten() {
  std::vector<std::pair<std::string_view, uint64_t>> lines;
  for (const auto level : kCountedLevels) {
    const auto name = spdlog::level::to_string_view(level);
    lines.emplace_back(std::string_view(name.data(), name.size()), lines_written[level].load(std::memory_order_relaxed));
  }
  return lines;
}

void SummarizeEndedFloods() {
  const auto [output, limiter] = Log().current();
  if (limiter != nullptr) WriteFloods(*output, limiter->TakeEnded());
}

void SummarizeAllFloods() {
  const auto [output, limiter] = Log().current();
  if (limiter != nullptr) WriteFloods(*output, limiter->TakeAll());
}

void LogDebug(std::string_view event, std::string_view message) { Write(spdlog::level::debug, event, message); }
void LogInfo(std::string_view event, std::string_view message) { Write(spdlog::level::info, event, message); }
void LogWarning(std::string_view event, std::string_view message) { Write(spdlog::level::warn, event, message); }
void LogError(std::string_view event, std::string_view message) { Write(spdlog::level::err, event, message); }

bool StateLog::Good(std::string_view message) {
  const MutexLock lock(mutex_);
  return SetGood(message);
}

bool StateLog::Recovered(std::string_view message) {
  const MutexLock lock(mutex_);
  if (!state_) state_ = "";
  return SetGood(message);
}

bool StateLog::SetGood(std::string_view message) {
  if (state_ && state_->empty()) return false;
  const std::string after = state_ ? ", after " + WholeSeconds(std::chrono::steady_clock::now() - bad_since_) : "";
  state_ = "";
  Write(spdlog::level::info, event_, std::string(message) + after, Limit::kNone);
  return true;
}

bool StateLog::Bad(std::string_view kind, std::string_view message) {
  const MutexLock lock(mutex_);
  if (state_ == kind) return false;
  if (!state_ || state_->empty()) bad_since_ = std::chrono::steady_clock::now();
  state_ = kind;
  Write(spdlog::level::warn, event_, message, Limit::kNone);
  return true;
}

}  // namespace persia::agent
