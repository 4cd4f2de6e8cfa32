#include "model/events.h"

#include <cstdint>
#include <utility>

namespace persia::agent {

JobEvent AgentEvent(std::string name, std::string text, std::chrono::system_clock::time_point now) {
  JobEvent event;
  event.unix_ms = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count());
  event.type = "persia.agent";
  event.name = std::move(name);
  event.metadata.emplace_back("text", std::move(text));
  return event;
}

JobEvent LoggedAgentEvent(LogLevel level, std::string name, std::string text, std::chrono::system_clock::time_point now) {
  std::string log_event = name;
  log_event.replace(log_event.find('_'), 1, ".");
  level == LogLevel::kWarning ? LogWarning(log_event, text) : LogInfo(log_event, text);
  return AgentEvent(std::move(name), std::move(text), now);
}

}  // namespace persia::agent
