#include "web/status_json.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

namespace {

double AsSeconds(std::chrono::duration<double> duration) { return duration.count(); }

}  // namespace

Json GoodputJson(const GoodputReport& report) {
  const auto ratio = report.Ratio();
  if (!ratio) return {};
  const GoodputReport::Rank counted = report.TotalOfMarking(true);
  Json buckets = Json::object();
  for (size_t i = 0; i < kBuckets; ++i) buckets[std::string(Name(static_cast<Bucket>(i)))] = AsSeconds(counted.time[i]);
  const GoodputReport::Rank all = report.Total();
  const auto repair = report.MeanRepair();
  return {{"ratio", *ratio},
          {"bucket_seconds", std::move(buckets)},
          {"seconds_without_phases", AsSeconds(report.TotalOfMarking(false).AllTime())},
          {"restarts", all.restarts},
          {"redone_steps", all.redone_steps ? Json(*all.redone_steps) : Json()},
          {"mean_time_to_repair_seconds", repair ? Json(repair->count()) : Json()}};
}

namespace {

int64_t MillisecondsSince1970(RankReport::TimePoint time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

double InSecondsOf(std::chrono::duration<double> duration) { return duration.count(); }

Json RankJson(const Identity& identity) {
  return {{"role", LabelValueOf(identity, "role")}, {"instance", LabelValueOf(identity, "instance")}};
}

}  // namespace

Json SlowestJson(const std::optional<RankReport::Slowest>& slowest) {
  if (!slowest) return {};
  const auto& [verdict, time] = *slowest;
  Json json = RankJson(verdict.identity);
  json["text"] = SentenceOf(*slowest);
  json["phase"] = verdict.phase;
  json["seconds"] = InSecondsOf(time);
  json["seconds_per_step"] = verdict.seconds_per_step;
  json["step_seconds"] = verdict.step_seconds;
  return json;
}

Json VerdictsJson(const RankReport& report) {
  Json stragglers = Json::array();
  for (const auto& [verdict, since] : report.stragglers) {
    if (report.StandsStill(LabelValueOf(verdict.identity, "role"))) continue;
    Json json = RankJson(verdict.identity);
    json["text"] = SentenceOf(verdict);
    json["phase"] = verdict.phase;
    json["seconds_per_step"] = verdict.seconds_per_step;
    json["step_seconds"] = verdict.step_seconds;
    json["waiting"] = verdict.waiting;
    json["since_ms"] = MillisecondsSince1970(since);
    stragglers.push_back(std::move(json));
  }
  Json hangs = Json::array();
  for (const auto& [verdict, since] : report.awaited) {
    Json json = RankJson(verdict.identity);
    json["text"] = SentenceOf(verdict);
    json["phase"] = verdict.phase;
    json["step"] = verdict.step ? Json(*verdict.step) : Json();
    json["waited_seconds"] = InSecondsOf(verdict.waited);
    json["waiting"] = verdict.waiting;
    json["since_ms"] = MillisecondsSince1970(since);
    hangs.push_back(std::move(json));
  }
  std::map<std::string, std::vector<const StragglerJudge::Rank*>> roles;
  for (const StragglerJudge::Rank& rank : report.ranks) roles[LabelValueOf(rank.identity, "role")].push_back(&rank);
  Json ranks = Json::array();
  for (auto& [role, of_role] : roles) {
    if (report.StandsStill(role)) continue;
    std::ranges::stable_sort(of_role, {}, &StragglerJudge::Rank::Sync);
    of_role.resize(std::min(of_role.size(), kRanksCompared));
    for (const StragglerJudge::Rank* rank : of_role) {
      Json json = RankJson(rank->identity);
      json["seconds_per_step"] = rank->seconds_per_step;
      ranks.push_back(std::move(json));
    }
  }
  Json judged = Json::array();
  for (const StragglerJudge::Judged& role : report.judged) {
    judged.push_back({{"role", role.role},
                      {"ranks", role.ranks},
                      {"measured", role.measured},
                      {"needed", role.needed},
                      {"undecided", role.is_undecided}});
  }
  return {{"stragglers", std::move(stragglers)},
          {"hangs", std::move(hangs)},
          {"ranks", std::move(ranks)},
          {"judged", std::move(judged)}};
}

}  // namespace persia::agent
