#include "health/run_summary.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace persia::agent {
namespace {

using Rank = GoodputInSeconds::Rank;
using Seconds = std::chrono::duration<double>;

Json BucketsJson(const Rank& rank) {
  Json buckets = Json::object();
  for (size_t i = 0; i < kBuckets; ++i) buckets[std::string(Name(static_cast<Bucket>(i)))] = rank.time[i].count();
  return buckets;
}

template <class Number>
Json OrNull(const std::optional<Number>& number) {
  return number ? Json(*number) : Json(nullptr);
}

// The members of one object; the first one of a wrong type is noted.
class Members {
 public:
  Members(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  // Missing, null or of a wrong type: `otherwise`.
  double Number(const char* name, double otherwise = 0) { return Find(name, &Json::is_number, "a number", otherwise); }
  std::string Text(const char* name) { return Find(name, &Json::is_string, "a string", std::string()); }
  bool Truth(const char* name) { return Find(name, &Json::is_boolean, "true or false", false); }
  uint64_t Count(const char* name) {
    const double number = Number(name);
    constexpr double kMost = 0x1p53;
    if (number >= 0 && number <= kMost) return static_cast<uint64_t>(number);
    Note(name, "a count");
    return 0;
  }
  std::optional<double> MaybeNumber(const char* name) {
    const auto at = object_.find(name);
    return at == object_.end() || at->is_null() ? std::nullopt : std::optional(Number(name));
  }
  void Note(const char* name, const char* expected) {
    if (error_.empty()) error_ = "has no usable " + Quoted(where_ + name) + ", which must be " + expected;
  }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  template <class T>
  T Find(const char* name, bool (Json::*is_of_type)() const, const char* expected, T otherwise) {
    const auto at = object_.find(name);
    if (at == object_.end() || at->is_null()) return otherwise;
    if (((*at).*is_of_type)()) return at->template get<T>();
    Note(name, expected);
    return otherwise;
  }

  const Json& object_;
  const std::string where_;
  std::string error_;
};

Result<Rank> ParseRank(const Json& json, const std::string& where) {
  if (!json.is_object()) return Error{"has no usable " + Quoted(where) + ", which must be an object"};
  Members members(json, where + ".");
  Rank rank{.rank = {members.Text("role"), static_cast<int32_t>(members.Count("replica"))}};
  rank.restarts = members.Count("restarts");
  if (members.MaybeNumber("redone_steps"))
    rank.redone_steps = members.Count("redone_steps");
  else
    rank.redone_steps.reset();
  rank.repair = Seconds(members.Number("repair_seconds"));
  rank.step = members.MaybeNumber("highest_step");
  rank.marks = members.Truth("marks_phases");
  const auto buckets = json.find("bucket_seconds");
  if (buckets == json.end() || !buckets->is_object()) members.Note("bucket_seconds", "an object");
  if (!members.error().empty()) return Error{members.error()};
  Members of_buckets(*buckets, where + ".bucket_seconds.");
  for (size_t i = 0; i < kBuckets; ++i) rank.time[i] = Seconds(of_buckets.Number(Name(static_cast<Bucket>(i)).data()));
  if (!of_buckets.error().empty()) return Error{of_buckets.error()};
  return rank;
}

}  // namespace

GoodputInSeconds InSeconds(const GoodputReport& report) {
  GoodputInSeconds in_seconds;
  for (const GoodputReport::Rank& from : report.ranks) {
    Rank& rank = in_seconds.ranks.emplace_back(Rank{.rank = from.rank,
                                                    .redone_steps = from.redone_steps,
                                                    .restarts = from.restarts,
                                                    .repair = from.repair,
                                                    .marks = from.marks,
                                                    .step = from.step});
    std::ranges::copy(from.time, rank.time.begin());
  }
  return in_seconds;
}

Json SummaryJson(const RunSummary& summary) {
  const Rank total = summary.goodput.Total();
  const auto repair = summary.goodput.MeanRepair();
  Json json{{"format", RunSummary::kFormat},
            {"version", RunSummary::kVersion},
            {"job", summary.job},
            {"run_id", summary.run_id},
            {"attempt", summary.attempt ? Json(*summary.attempt) : Json(nullptr)},
            {"agent_version", summary.agent_version},
            {"exit_code", summary.exit_code ? Json(*summary.exit_code) : Json(nullptr)},
            {"seconds", summary.seconds},
            {"goodput_ratio", OrNull(summary.goodput.Ratio())},
            {"rank_seconds", total.AllTime().count()},
            {"bucket_seconds", BucketsJson(total)},
            {"restarts", total.restarts},
            {"redone_steps", OrNull(total.redone_steps)},
            {"mean_time_to_repair_seconds", repair ? Json(repair->count()) : Json(nullptr)}};
  Json ranks = Json::array();
  for (const Rank& rank : summary.goodput.ranks) {
    ranks.push_back({{"role", rank.rank.role},
                     {"replica", rank.rank.replica},
                     {"seconds", rank.AllTime().count()},
                     {"bucket_seconds", BucketsJson(rank)},
                     {"restarts", rank.restarts},
                     {"redone_steps", OrNull(rank.redone_steps)},
                     {"repair_seconds", rank.repair.count()},
                     {"highest_step", OrNull(rank.step)},
                     {"marks_phases", rank.marks}});
  }
  json["ranks"] = std::move(ranks);
  json["deaths"] = summary.deaths;
  json["slowest"] = summary.slowest;
  return json;
}

Result<RunSummary> ParseSummary(std::string_view text) {
  const Json json = ParseJson(text);
  if (json.is_discarded()) return Error{"is no JSON; it begins with " + Quoted(text.substr(0, 40))};
  if (!json.is_object()) return Error{"is no summary of a run: it has no object at the top"};
  Members members(json, "");
  if (const std::string format = members.Text("format"); format != RunSummary::kFormat)
    return Error{"is no summary of a run: its \"format\" is " + Quoted(format) + ", not " + Quoted(RunSummary::kFormat)};
  if (const uint64_t version = members.Count("version"); version != RunSummary::kVersion) {
    return Error{"has version " + std::to_string(version) + " of the format; this program reads version " +
                 std::to_string(RunSummary::kVersion)};
  }
  RunSummary summary{
      .job = members.Text("job"), .run_id = members.Text("run_id"), .agent_version = members.Text("agent_version")};
  if (const auto code = members.MaybeNumber("exit_code")) summary.exit_code = static_cast<int>(std::clamp(*code, 0.0, 255.0));
  if (members.MaybeNumber("attempt")) summary.attempt = static_cast<int>(members.Count("attempt"));
  summary.seconds = members.Number("seconds");
  if (const auto deaths = json.find("deaths"); deaths != json.end()) {
    if (deaths->is_array())
      summary.deaths = *deaths;
    else
      members.Note("deaths", "an array");
  }
  if (const auto slowest = json.find("slowest"); slowest != json.end()) summary.slowest = *slowest;
  const auto ranks = json.find("ranks");
  if (ranks == json.end() || !ranks->is_array()) members.Note("ranks", "an array");
  if (!members.error().empty()) return Error{members.error()};
  for (const Json& rank : *ranks) {
    auto parsed = ParseRank(rank, "ranks[" + std::to_string(summary.goodput.ranks.size()) + "]");
    if (!parsed.ok()) return Error{parsed.error()};
    summary.goodput.ranks.push_back(std::move(parsed).value());
  }
  return summary;
}

}  // namespace persia::agent
