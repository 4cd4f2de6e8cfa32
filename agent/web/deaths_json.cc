#include "web/deaths_json.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "health/phrases.h"

namespace persia::agent {
namespace {

Json OrNull(const std::optional<uint64_t>& value) { return value ? Json(*value) : Json(); }

int64_t Milliseconds(Death::TimePoint time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

Json DeathJson(const Death& death) {
  const Circumstances& about = death.about;
  return {{"role", death.role},
          {"instance", death.instance},
          {"process", death.process},
          {"pid", death.pid},
          {"cause", Name(death.cause)},
          {"exit", death.exit},
          {"text", ProcessName({death.role, death.instance, death.process}) + " died: " + SentenceOf(death)},
          {"look_at", death.look_at},
          {"phase", death.phase.empty() ? Json() : Json(death.phase)},
          {"step", death.step ? Json(*death.step) : Json()},
          {"began_ms", Milliseconds(death.began)},
          {"ended_ms", Milliseconds(death.ended_at)},
          {"resident_bytes", OrNull(about.resident)},
          {"resident_bytes_before", OrNull(about.resident_before)},
          {"memory_limit_bytes", OrNull(about.memory_limit)},
          {"oom_score", about.oom_score ? Json(*about.oom_score) : Json()},
          {"open_files", OrNull(about.open_files)},
          {"cpu_seconds", OrNull(about.cpu_seconds)},
          {"limits",
           {{"open_files", OrNull(about.max_open_files)},
            {"file_bytes", OrNull(about.max_file_bytes)},
            {"cpu_seconds", OrNull(about.max_cpu_seconds)},
            {"address_space_bytes", OrNull(about.max_address_space)}}},
          {"full_filesystems", about.full_filesystems},
          {"last_events", death.last_events},
          {"stderr", about.stderr_lines},
          {"stacks", death.stacks}};
}

}  // namespace

Json DeathsJson(std::span<const Death> deaths, const std::optional<RunAttempt>& attempt) {
  Json json = Json::array();
  for (const Death& death : deaths) {
    json.push_back(DeathJson(death));
    json.back()["earlier_attempt"] = attempt && death.ended_at < attempt->began;
  }
  return json;
}

}  // namespace persia::agent
