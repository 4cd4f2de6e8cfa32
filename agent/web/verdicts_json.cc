#include "web/verdicts_json.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace persia::agent {
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
