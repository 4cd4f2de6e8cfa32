#include "health/summary_text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <optional>
#include <utility>

#include "base/text.h"

namespace persia::agent {
namespace {

using Rank = GoodputInSeconds::Rank;

constexpr const char* kUnknown = "unknown";

template <class... Values>
std::string Format(const char* format, Values... values) {
  std::array<char, 128> text{};
  const int size = std::snprintf(text.data(), text.size(), format, values...);
  return {text.data(), static_cast<size_t>(std::clamp(size, 0, static_cast<int>(text.size()) - 1))};
}

std::string PercentText(double ratio) { return Format("%.1f %%", 100 * ratio); }

std::string CountText(uint64_t count, const char* one, const char* several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

// Its name, the value of each run, and the difference. An empty row is a blank line.
using Row = std::vector<std::string>;

// Aligned: the first column to the left, the others to the right.
std::string Aligned(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string spaces(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (i == 0 ? row[i] + spaces : spaces + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

// The ranks whose time the goodput is a share of, so that a bucket has one percentage: those that mark phases, or all if none
// does.
Rank CountedRanks(const GoodputInSeconds& goodput) { return goodput.Ratio() ? goodput.TotalOfMarking(true) : goodput.Total(); }
// That of the other ranks.
double TimeWithoutPhases(const GoodputInSeconds& goodput) {
  return goodput.Ratio() ? goodput.TotalOfMarking(false).AllTime().count() : 0;
}

enum class Unit { kSeconds, kCount, kRatio };

std::string ValueText(Unit unit, double value) {
  return unit == Unit::kSeconds ? DurationText(value) : unit == Unit::kRatio ? PercentText(value) : Format("%.0f", value);
}

std::string DifferenceText(Unit unit, double difference) {
  if (unit == Unit::kRatio) return Format("%+.1f points", 100 * difference);
  return (difference < 0 ? "-" : "+") + ValueText(unit, std::abs(difference));
}

std::string ShareText(const Rank& rank, size_t bucket) {
  const double all = rank.AllTime().count();
  const double seconds = rank.time[bucket].count();
  return DurationText(seconds) + Format(" %5.1f %%", all > 0 ? 100 * seconds / all : 0);
}

// With one run there are no differences.
std::vector<Row> RowsOf(const std::vector<std::pair<std::string, const RunSummary*>>& runs) {
  const bool compares = runs.size() > 1;
  std::vector<Row> rows;
  const auto add_texts = [&](const std::string& name, const auto& text_of, std::string difference = "") {
    Row row{name};
    for (const auto& [file, run] : runs) row.push_back(text_of(*run));
    if (compares) row.push_back(std::move(difference));
    rows.push_back(std::move(row));
  };
  // `value_of` returns an optional double; none: not known.
  const auto add = [&](const std::string& name, Unit unit, const auto& value_of, const char* unknown = "-") {
    const std::optional<double> from = value_of(*runs.front().second);
    const std::optional<double> to = value_of(*runs.back().second);
    const auto text_of = [&](const RunSummary& run) {
      const std::optional<double> value = value_of(run);
      return value ? ValueText(unit, *value) : unknown;
    };
    add_texts(name, text_of, from && to ? DifferenceText(unit, *to - *from) : "");
  };
  Row header{""};
  for (const auto& [file, run] : runs) header.push_back(file);
  if (compares) header.emplace_back("difference");
  rows.push_back(std::move(header));
  const auto number = [](const std::optional<int>& value) { return value ? std::to_string(*value) : "-"; };
  add_texts(
      "job", [](const RunSummary& run) { return OneLine(run.job); });
  add_texts(
      "run", [](const RunSummary& run) { return OneLine(run.run_id); });
  if (std::ranges::any_of(runs, [](const auto& run) { return run.second->attempt.has_value(); }))
    add_texts(
        "attempt", [&](const RunSummary& run) { return number(run.attempt); });
  add_texts(
      "exit code", [&](const RunSummary& run) { return number(run.exit_code); });
  add(
      "duration", Unit::kSeconds, [](const RunSummary& run) { return run.seconds; });
  add(
      "ranks", Unit::kCount, [](const RunSummary& run) { return run.goodput.ranks.size(); });
  add(
      "goodput", Unit::kRatio, [](const RunSummary& run) { return run.goodput.Ratio(); });
  add(
      "restarts", Unit::kCount, [](const RunSummary& run) { return run.goodput.Total().restarts; });
  add(
      "deaths", Unit::kCount, [](const RunSummary& run) { return run.deaths.size(); });
  add(
      "redone steps", Unit::kCount, [](const RunSummary& run) { return run.goodput.Total().redone_steps; }, kUnknown);
  add(
      "mean time to repair", Unit::kSeconds,
      [](const RunSummary& run) {
        const auto mean = run.goodput.MeanRepair();
        return mean ? std::optional(mean->count()) : std::nullopt;
      });
  add("time of all ranks", Unit::kSeconds, [](const RunSummary& run) { return run.goodput.Total().AllTime().count(); });
  const Rank from = CountedRanks(runs.front().second->goodput);
  const Rank to = CountedRanks(runs.back().second->goodput);
  for (size_t i = 0; i < kBuckets; ++i) {
    if (from.time[i].count() == 0 && to.time[i].count() == 0) continue;
    add_texts(
        "  " + std::string(Name(static_cast<Bucket>(i))),
        [i](const RunSummary& run) { return ShareText(CountedRanks(run.goodput), i); },
        DifferenceText(Unit::kSeconds, (to.time[i] - from.time[i]).count()));
  }
  if (std::ranges::any_of(runs, [](const auto& run) { return TimeWithoutPhases(run.second->goodput) != 0; }))
    add("  without phases", Unit::kSeconds, [](const RunSummary& run) { return TimeWithoutPhases(run.goodput); });
  return rows;
}

std::string RankTable(const RunSummary& summary) {
  std::vector<Row> rows{{"rank", "time"}};
  std::vector<size_t> shown;
  const Rank total = summary.goodput.Total();
  for (size_t i = 0; i < kBuckets; ++i) {
    if (total.time[i].count() == 0) continue;
    shown.push_back(i);
    rows[0].emplace_back(Name(static_cast<Bucket>(i)));
  }
  rows[0].insert(rows[0].end(), {"restarts", "redone steps"});
  for (const Rank& rank : summary.goodput.ranks) {
    const double all = rank.AllTime().count();
    Row& row = rows.emplace_back(Row{OneLine(rank.rank.role) + " rep_" + std::to_string(rank.rank.replica), DurationText(all)});
    for (const size_t i : shown) row.push_back(PercentText(all > 0 ? rank.time[i].count() / all : 0));
    row.push_back(std::to_string(rank.restarts));
    row.push_back(rank.redone_steps ? std::to_string(*rank.redone_steps) : kUnknown);
  }
  return Aligned(rows);
}

// "2026-11-26 18:56:17 UTC: "; empty: the file has no time.
std::string TimeText(const Json& death) {
  const auto found = death.is_object() ? death.find("ended_ms") : death.end();
  if (found == death.end() || !found->is_number_integer()) return "";
  const auto seconds = static_cast<std::time_t>(found->get<int64_t>() / 1000);
  std::tm utc{};
  char text[64];
  const bool is_time = gmtime_r(&seconds, &utc) != nullptr;
  return is_time && std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC: ", &utc) > 0 ? text : "";
}

// On one line; empty: there is none.
std::string MemberText(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? OneLine(found->get<std::string>()) : std::string();
}

// Each with its time and advice, if the file has them.
std::string DeathsText(const Json& deaths) {
  std::string text;
  for (const Json& death : deaths) {
    if (const std::string what = MemberText(death, "text"); !what.empty()) text += TimeText(death) + what + '\n';
    if (const std::string where = MemberText(death, "look_at"); !where.empty()) text += "  " + where + '\n';
  }
  return text;
}

}  // namespace

std::string DurationText(double seconds) {
  if (!(seconds > 0)) return "0 s";
  if (seconds < 60) return Format("%.1f s", seconds);
  const auto whole = static_cast<long long>(std::llround(std::min(seconds, 1e15)));
  if (whole < 3600) return Format("%lld min %02lld s", whole / 60, whole % 60);
  return Format("%lld h %02lld min", whole / 3600, whole % 3600 / 60);
}

std::vector<std::string> SummaryLines(const RunSummary& summary) {
  const auto ratio = summary.goodput.Ratio();
  if (!ratio) return {};
  const Rank total = summary.goodput.Total();
  std::string first =
      "goodput " + PercentText(*ratio) + ", " + CountText(summary.goodput.ranks.size(), "rank", "ranks") + ", " +
      CountText(total.restarts, "restart", "restarts") + ", " +
      (total.redone_steps ? CountText(*total.redone_steps, "step", "steps") + " redone" : "redone steps unknown");
  if (const auto repair = summary.goodput.MeanRepair()) first += ", mean time to repair " + DurationText(repair->count());
  const Rank counted = CountedRanks(summary.goodput);
  const double without = TimeWithoutPhases(summary.goodput);
  std::string second = without > 0 ? "time of the ranks that mark phases " : "time of all ranks ";
  second += DurationText(counted.AllTime().count());
  std::vector<size_t> buckets;
  for (size_t i = 0; i < kBuckets; ++i)
    if (counted.time[i].count() > 0) buckets.push_back(i);
  std::ranges::stable_sort(buckets, [&](size_t a, size_t b) { return counted.time[a] > counted.time[b]; });
  const char* separator = ": ";
  for (const size_t i : buckets) {
    second += separator + std::string(Name(static_cast<Bucket>(i))) + " " + DurationText(counted.time[i].count()) + " (" +
              PercentText(counted.time[i] / counted.AllTime()) + ")";
    separator = ", ";
  }
  if (without > 0) second += "; of the others " + DurationText(without);
  std::vector<std::string> lines{std::move(first), std::move(second)};
  if (std::string slowest = MemberText(summary.slowest, "text"); !slowest.empty()) lines.push_back(std::move(slowest));
  return lines;
}

std::string SummaryTable(const std::string& name, const RunSummary& summary) {
  std::string text = Aligned(RowsOf({{name, &summary}}));
  if (!summary.goodput.ranks.empty()) text += "\n" + RankTable(summary);
  if (!summary.goodput.ranks.empty() && !summary.goodput.Ratio())
    text += "\nNo rank marks phases: goodput, and what the ranks did in the time that is unmarked, are not known.\n";
  if (const std::string slowest = MemberText(summary.slowest, "text"); !slowest.empty()) text += "\n" + slowest + "\n";
  if (const std::string deaths = DeathsText(summary.deaths); !deaths.empty()) text += "\n" + deaths;
  return text;
}

std::string CompareTable(const std::string& name_a, const RunSummary& a, const std::string& name_b, const RunSummary& b) {
  return Aligned(RowsOf({{name_a, &a}, {name_b, &b}}));
}

}  // namespace persia::agent
