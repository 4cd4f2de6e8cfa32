#include "web/status_api.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "health/phrases.h"
#include "web/machine_json.h"
#include "web/sentences.h"
#include "web/status_json.h"

namespace persia::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

// Push intervals without a successful push before the state of the job shows it.
constexpr int kOutputPatience = 3;

int64_t UnixMs(system_clock::time_point time) {
  return std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count();
}

double Seconds(std::chrono::duration<double> duration) { return duration.count(); }

// As the metric has it, cut to a whole number.
Json Integer(const ProcessUsage::Number& number, double scale = 1) {
  return number ? Json(static_cast<int64_t>(*number * scale)) : Json();
}

// A rank's rate belongs to its main process, as long as that is up.
Json ThroughputOfWorker(const AgentStatus& status, const WorkerKey& key, bool up) {
  const auto& [role, instance, process] = key;
  if (!status.throughput || !up || process != "0") return {};
  const auto rank = status.throughput->ranks.find({role, instance});
  return rank == status.throughput->ranks.end() ? Json() : Json(rank->second);
}

// `at`: when the processes were read.
Json WorkersJson(const AgentStatus& status, const std::vector<HealthReport::Reason>& reasons, system_clock::time_point at,
                 system_clock::time_point now) {
  std::map<WorkerKey, const Process*> workers;
  for (const Process& process : *status.processes) workers.emplace(WorkerKeyOf(process), &process);
  Json out = Json::array();
  for (const auto& [key, worker] : workers) {
    const WorkerKey& worker_key = key;
    const Process& process = *worker;
    const bool up = process.alive;
    const auto health = status.health->workers.find(key);
    const bool has_health = health != status.health->workers.end();
    const bool has_phase = up && !process.phase.empty();
    const bool has_changed = process.last_change != system_clock::time_point();
    const double unchanged = static_cast<double>(UnixMs(now) - UnixMs(process.last_change)) / 1000;
    const auto why = [&](std::string_view kind) {
      const auto reason = std::ranges::find_if(
          reasons, [&](const HealthReport::Reason& one) { return one.kind == kind && one.worker == worker_key; });
      return reason == reasons.end() ? nullptr : &*reason;
    };
    // A rank that the others wait for hangs, too, although its own metrics may change.
    const HealthReport::Reason* const hang = up ? why("hung") : nullptr;
    Json state(up ? "running" : "exited");
    Json since;
    if (hang != nullptr) {
      state = Name(WorkerState::kHung);
      since = hang->since ? Json(UnixMs(*hang->since)) : Json();
    } else if (has_health) {
      state = Name(health->second.state);
      since = UnixMs(health->second.since);
    }
    out.push_back({{"role", std::get<0>(key)},
                   {"instance", std::get<1>(key)},
                   {"process", std::get<2>(key)},
                   {"is_rank", IsRankPlace(key)},
                   {"up", up},
                   {"pid", up ? Json(process.id.pid) : Json()},
                   {"restarts", process.restarts},
                   {"start_time_ms", Integer(process.usage.start_time, 1000)},
                   {"cpu_seconds", process.usage.cpu_seconds ? Json(*process.usage.cpu_seconds) : Json()},
                   {"resident_bytes", Integer(process.usage.resident_bytes)},
                   {"threads", Integer(process.usage.threads)},
                   {"last_change_ms", has_changed ? Json(UnixMs(process.last_change)) : Json()},
                   {"unchanged_seconds", has_changed ? Json(std::max(0.0, unchanged)) : Json()},
                   {"throughput", ThroughputOfWorker(status, key, up)},
                   {"state", state},
                   {"state_since_ms", since},
                   {"phase", has_phase ? Json(process.phase) : Json()},
                   {"phase_since_ms", has_phase ? Json(UnixMs(at - process.in_phase)) : Json()},
                   {"step", up && process.step ? Json(*process.step) : Json()},
                   {"slow", up && why("slow") != nullptr},
                   {"hung", state == Name(WorkerState::kHung)},
                   {"last_exit", process.last_exit}});
  }
  return out;
}

Json GatewayJson(const GatewayStatus& gateway) {
  return {{"address", gateway.address},
          {"groups", gateway.groups},
          {"format", gateway.format},
          {"pushes", gateway.pushes},
          {"failed", gateway.pushes_failed},
          {"last_success_ms", gateway.last_success ? Json(UnixMs(*gateway.last_success)) : Json()},
          {"last_success_age_seconds", gateway.last_success ? Json(Seconds(gateway.since_success)) : Json()},
          {"last_push_seconds", gateway.pushes > 0 ? Json(Seconds(gateway.last_took)) : Json()},
          {"last_error", gateway.last_error}};
}

Json ReasonJson(const HealthReport::Reason& reason) {
  Json json = {{"kind", reason.kind}, {"text", reason.text}, {"headline", HeadlineOf(reason)}};
  for (const char* member : {"role", "instance", "process"}) json[member] = Json();
  if (reason.worker) std::tie(json["role"], json["instance"], json["process"]) = *reason.worker;
  json["since_ms"] = reason.since ? Json(UnixMs(*reason.since)) : Json();
  return json;
}

// Each part of an error begins with the address of its gateway.
std::string WithoutAddress(std::string error, const std::string& address) {
  const std::string named = address + ": ";
  for (size_t at = error.find(named); at != std::string::npos; at = error.find(named, at)) error.erase(at, named.size());
  return error;
}

// What is wrong with the job's metrics, and not with the job: they do not arrive. Null: nothing. `since_ms`: the last push that
// arrived; null: none has.
Json DeliveryJson(const AgentStatus& status) {
  const GatewayStatus& gateway = status.gateway;
  const bool arrived = gateway.last_success && gateway.since_success < kOutputPatience * status.push_interval;
  if (gateway.last_error.empty() || arrived) return {};
  return {{"text", "pushes to " + gateway.address + " fail: " + WithoutAddress(gateway.last_error, gateway.address)},
          {"since_ms", gateway.last_success ? Json(UnixMs(*gateway.last_success)) : Json()}};
}

// `labels`: without those of the identity.
Json NotFiniteJson(const NotFiniteReport& report) {
  Json values = Json::array();
  for (const NotFiniteValue& value : report.values) {
    Json labels = Json::object();
    for (const auto& [name, of] : value.labels) labels[name] = of;
    values.push_back({{"name", value.family},
                      {"value", value.value},
                      {"role", LabelValueOf(value.identity, "role")},
                      {"instance", LabelValueOf(value.identity, "instance")},
                      {"labels", std::move(labels)},
                      {"step", value.step ? Json(*value.step) : Json()},
                      {"since_ms", UnixMs(value.since)}});
  }
  return values;
}

Json AttemptJson(const std::optional<RunAttempt>& attempt) {
  if (!attempt) return {};
  const bool is_further = attempt->number > 1;
  return {{"number", attempt->number},
          {"began_ms", UnixMs(attempt->began)},
          {"run_began_ms", attempt->run_began ? Json(UnixMs(*attempt->run_began)) : Json()},
          {"text", is_further ? AttemptText(*attempt) + "; its counts, deaths and goodput go on" : ""}};
}

Json StandstillJson(const RankReport& ranks) {
  Json longest;
  for (const RankReport::Standstill& role : ranks.standstills)
    if (longest.is_null() || Seconds(role.unmoved) > longest) longest = Seconds(role.unmoved);
  return longest;
}

Json HealthJson(const AgentStatus& status, const std::vector<HealthReport::Reason>& all) {
  const HealthReport& health = *status.health;
  Json reasons = Json::array();
  for (const HealthReport::Reason& reason : all) reasons.push_back(ReasonJson(reason));
  return {{"state", Name(health.state)},
          {"title", TitleOf(health)},
          {"text", SituationOf(status)},
          {"standstill_seconds", StandstillJson(*status.ranks)},
          {"since_ms", health.since.time_since_epoch().count() > 0 ? Json(UnixMs(health.since)) : Json()},
          {"hang_after_seconds", health.hang_after.count() > 0 ? Json(Seconds(health.hang_after)) : Json()},
          {"exit_code", health.exit_code ? Json(*health.exit_code) : Json()},
          {"reasons", std::move(reasons)}};
}

Json ThroughputJson(const std::optional<Throughput>& throughput) {
  if (!throughput) return {};
  Json slowest;
  if (const auto& rank = throughput->slowest)
    slowest = {{"role", rank->role}, {"instance", rank->instance}, {"now", rank->now}, {"median", rank->median}};
  return {{"name", throughput->name}, {"now", throughput->now}, {"last_10m", throughput->last_10m}, {"slowest", slowest}};
}

Json ProgressJson(const std::optional<Progress>& progress) {
  if (!progress) return {};
  const auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  return {
      {"steps_per_second", number(progress->steps_per_second)},   {"samples_per_second", number(progress->samples_per_second)},
      {"tokens_per_second", number(progress->tokens_per_second)}, {"step", number(progress->step)},
      {"planned_steps", number(progress->planned_steps)},         {"remaining_seconds", number(progress->remaining_seconds)}};
}

}  // namespace

JsonAnswer AnswerStatus(const AgentStatus& status, const Snapshot* newest, system_clock::time_point now) {
  const History::Stats& history = status.history;
  const std::vector<HealthReport::Reason> reasons = ReasonsOf(status);
  Json verdicts = VerdictsJson(*status.ranks);
  verdicts["text"] = ComparisonOf(status);
  return AnswerWith(
      {{"version", status.version},
       {"job", status.job},
       {"run_id", status.run_id},
       {"directory", status.directory},
       {"attempt", AttemptJson(status.attempt)},
       {"now_ms", UnixMs(now)},
       {"push_interval_seconds", Seconds(status.push_interval)},
       {"gateway", GatewayJson(status.gateway)},
       {"health", HealthJson(status, reasons)},
       {"delivery", DeliveryJson(status)},
       {"deaths", DeathsJson(*status.health->deaths, status.attempt)},
       {"verdicts", std::move(verdicts)},
       {"not_finite", NotFiniteJson(*status.not_finite)},
       {"throughput", ThroughputJson(status.throughput)},
       {"progress", ProgressJson(status.progress)},
       {"goodput", GoodputJson(*status.goodput)},
       {"restarts", status.goodput->Total().restarts},
       {"machine", newest == nullptr ? Json() : MachineJson(*newest, status.recent)},
       {"kept_page", status.kept_page.empty() ? Json() : Json(status.kept_page)},
       {"series", status.series},
       {"segments", {{"live", status.workers}, {"ended", status.workers_ended}, {"refused", status.segments_refused}}},
       {"history",
        {{"seconds", Seconds(history.options.span)},
         {"step_seconds", Seconds(std::max(history.step, status.look_interval))},
         {"bytes", history.bytes},
         {"max_bytes", history.options.max_bytes},
         {"collections", history.entries},
         {"oldest_ms", history.oldest_unix_ms ? Json(*history.oldest_unix_ms) : Json()}}},
       {"workers", newest == nullptr ? Json::array() : WorkersJson(status, reasons, newest->collected_at, now)}});
}

}  // namespace persia::agent
