#include "web/deaths_json.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "health/deaths.h"
#include "health/phrases.h"

namespace persia::agent {
namespace {

Json OrNull(const std::optional<uint64_t>& value) { return value ? Json(*value) : Json(); }

int64_t Milliseconds(ProcessEnd::TimePoint time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

Json DeathJson(const Process& dead) {
  const ProcessEnd& end = *dead.end;
  const Circumstances& about = end.about;
  const WorkerKey key = WorkerKeyOf(dead);
  const auto& [role, instance, process] = key;
  return {{"role", role},
          {"instance", instance},
          {"process", process},
          {"pid", dead.id.pid},
          {"cause", Name(end.death->cause)},
          {"exit", end.exit},
          {"text", ProcessName(key) + " died: " + SentenceOf(dead)},
          {"look_at", end.death->look_at},
          {"phase", dead.phase.empty() ? Json() : Json(dead.phase)},
          {"step", dead.step ? Json(*dead.step) : Json()},
          {"began_ms", static_cast<int64_t>(dead.birth_unix_ns) / 1'000'000},
          {"ended_ms", Milliseconds(end.at)},
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
          {"last_events", end.last_events},
          {"stderr", about.stderr_lines},
          {"stacks", about.stacks}};
}

}  // namespace

Json DeathsJson(std::span<const Process> deaths, const std::optional<RunAttempt>& attempt) {
  Json json = Json::array();
  for (const Process& dead : deaths) {
    json.push_back(DeathJson(dead));
    json.back()["earlier_attempt"] = attempt && dead.end->at < attempt->began;
  }
  return json;
}

}  // namespace persia::agent
