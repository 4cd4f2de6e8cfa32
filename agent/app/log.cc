#include "app/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <vector>

#include "app/text.h"

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

std::shared_ptr<const Output> MakeOutput(LogLevel level, LogFormat format) {
  auto output = std::make_shared<Output>();
  output->format = format;
  output->logger = std::make_shared<spdlog::logger>("persia-metrics-agent", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  output->logger->set_level(ToSpdlog(level));
  output->logger->set_error_handler([](const std::string&) {});  // a full disk behind stderr is no reason to say more
  // The message is put together here, so that spdlog's own formatting never sees its text.
  output->logger->set_pattern(format == LogFormat::kJson ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})"
                                                         : "%Y-%m-%dT%H:%M:%S.%e%z %n %l: %v");
  return output;
}

// Never destroyed: threads may log to the last moment.
std::mutex& OutputMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

std::shared_ptr<const Output>& CurrentOutput() {
  static auto* const output = new std::shared_ptr<const Output>(MakeOutput(LogLevel::kInfo, LogFormat::kText));
  return *output;
}

std::shared_ptr<LogLimiter>& CurrentLimiter() {
  static auto* const limiter = new std::shared_ptr<LogLimiter>;
  return *limiter;
}

std::pair<std::shared_ptr<const Output>, std::shared_ptr<LogLimiter>> Current() {
  const std::lock_guard lock(OutputMutex());
  return {CurrentOutput(), CurrentLimiter()};
}

void Put(const Output& output, spdlog::level::level_enum level, std::string_view event, std::string_view message) {
  const std::string line = output.format == LogFormat::kJson
                               ? "\"event\":" + JsonString(event) + ",\"message\":" + JsonString(message)
                               : OneLine(message);
  output.logger->log(level, spdlog::string_view_t(line.data(), line.size()));
}

void PutFloods(const Output& output, const std::vector<LogLimiter::Flood>& floods) {
  for (const LogLimiter::Flood& flood : floods) {
    Put(output, static_cast<spdlog::level::level_enum>(flood.severity), flood.event,
        std::to_string(flood.lines) + " more lines of " + flood.event + " were left out in " +
            std::to_string(flood.lasted.count()) + " s; the last said: " + flood.last);
  }
}

void Write(spdlog::level::level_enum level, std::string_view event, std::string_view message) {
  const auto [output, limiter] = Current();
  if (!output->logger->should_log(level)) {
    return;
  }
  if (limiter != nullptr && level > spdlog::level::debug) {
    PutFloods(*output, limiter->TakeEnded());
    if (!limiter->Admit(event, level, message)) {
      return;
    }
  }
  Put(*output, level, event, message);
}

std::string WholeSeconds(std::chrono::steady_clock::duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

}  // namespace

void SetUpLog(LogLevel level, LogFormat format) {
  std::shared_ptr<const Output> output = MakeOutput(level, format);
  const std::lock_guard lock(OutputMutex());
  CurrentOutput() = std::move(output);
}

void SetLogLimiter(std::shared_ptr<LogLimiter> limiter) {
  const std::lock_guard lock(OutputMutex());
  CurrentLimiter() = std::move(limiter);
}

void LogEndedFloods() {
  if (const auto [output, limiter] = Current(); limiter != nullptr) {
    PutFloods(*output, limiter->TakeEnded());
  }
}

void LogAllFloods() {
  if (const auto [output, limiter] = Current(); limiter != nullptr) {
    PutFloods(*output, limiter->TakeAll());
  }
}

void LogDebug(std::string_view event, std::string_view message) { Write(spdlog::level::debug, event, message); }
void LogInfo(std::string_view event, std::string_view message) { Write(spdlog::level::info, event, message); }
void LogWarning(std::string_view event, std::string_view message) { Write(spdlog::level::warn, event, message); }
void LogError(std::string_view event, std::string_view message) { Write(spdlog::level::err, event, message); }

bool StateLog::Good(std::string_view message) {
  const std::lock_guard lock(mutex_);
  if (state_ && state_->empty()) {
    return false;
  }
  const std::string after = state_ ? ", after " + WholeSeconds(std::chrono::steady_clock::now() - bad_since_) : "";
  state_ = "";
  LogInfo(event_, std::string(message) + after);
  return true;
}

bool StateLog::Recovered(std::string_view message) {
  {
    const std::lock_guard lock(mutex_);
    if (!state_) {
      state_ = "";
    }
  }
  return Good(message);
}

bool StateLog::Bad(std::string_view kind, std::string_view message) {
  const std::lock_guard lock(mutex_);
  if (state_ == kind) {
    return false;
  }
  if (!state_ || state_->empty()) {
    bad_since_ = std::chrono::steady_clock::now();
  }
  state_ = kind;
  LogWarning(event_, message);
  return true;
}

}  // namespace persia::agent
