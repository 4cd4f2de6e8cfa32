#include "summary/summary_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/text.h"

namespace persia::agent {
namespace {

using Rank = RunSummary::Rank;

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

std::string ShareText(const Rank& rank, size_t bucket) {
  const double all = rank.AllSeconds();
  return DurationText(rank.seconds[bucket]) + Format(" %5.1f %%", all > 0 ? 100 * rank.seconds[bucket] / all : 0);
}

std::string SignedDuration(double seconds) { return (seconds < 0 ? "-" : "+") + DurationText(std::abs(seconds)); }
std::string SignedCount(uint64_t from, uint64_t to) {
  return to >= from ? "+" + std::to_string(to - from) : "-" + std::to_string(from - to);
}
std::string ExitText(const RunSummary& summary) { return summary.exit_code ? std::to_string(*summary.exit_code) : "-"; }
std::string RatioText(const std::optional<double>& ratio) { return ratio ? PercentText(*ratio) : "-"; }
std::string RepairText(const std::optional<double>& seconds) { return seconds ? DurationText(*seconds) : "-"; }

std::string DifferenceText(const std::optional<double>& from, const std::optional<double>& to, bool is_ratio) {
  if (!from || !to) return "";
  return is_ratio ? Format("%+.1f points", 100 * (*to - *from)) : SignedDuration(*to - *from);
}

// With one run there are no differences.
std::vector<Row> RowsOf(const std::vector<std::pair<std::string, const RunSummary*>>& runs) {
  const RunSummary& a = *runs.front().second;
  const RunSummary& b = *runs.back().second;
  const bool compares = runs.size() > 1;
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, const auto& text_of, const std::string& difference) {
    Row row{name};
    for (const auto& [file, summary] : runs) row.push_back(text_of(*summary));
    if (compares) row.push_back(difference);
    rows.push_back(std::move(row));
  };
  Row header{""};
  for (const auto& [file, summary] : runs) header.push_back(file);
  if (compares) header.emplace_back("difference");
  rows.push_back(std::move(header));
  const Rank total_a = a.Total();
  const Rank total_b = b.Total();
  add(
      "job", [](const RunSummary& run) { return OneLine(run.job); }, "");
  add(
      "run", [](const RunSummary& run) { return OneLine(run.run_id); }, "");
  add("exit code", ExitText, "");
  add(
      "duration", [](const RunSummary& run) { return DurationText(run.seconds); }, SignedDuration(b.seconds - a.seconds));
  add(
      "ranks", [](const RunSummary& run) { return std::to_string(run.ranks.size()); },
      SignedCount(a.ranks.size(), b.ranks.size()));
  add(
      "goodput", [](const RunSummary& run) { return RatioText(run.Ratio()); }, DifferenceText(a.Ratio(), b.Ratio(), true));
  add(
      "restarts", [](const RunSummary& run) { return std::to_string(run.Total().restarts); },
      SignedCount(total_a.restarts, total_b.restarts));
  add(
      "deaths", [](const RunSummary& run) { return std::to_string(run.deaths.size()); },
      SignedCount(a.deaths.size(), b.deaths.size()));
  add(
      "redone steps", [](const RunSummary& run) { return std::to_string(run.Total().redone_steps); },
      SignedCount(total_a.redone_steps, total_b.redone_steps));
  add(
      "mean time to repair", [](const RunSummary& run) { return RepairText(run.MeanRepairSeconds()); },
      DifferenceText(a.MeanRepairSeconds(), b.MeanRepairSeconds(), false));
  add(
      "time of all ranks", [](const RunSummary& run) { return DurationText(run.Total().AllSeconds()); },
      SignedDuration(total_b.AllSeconds() - total_a.AllSeconds()));
  for (size_t i = 0; i < kBuckets; ++i) {
    if (total_a.seconds[i] == 0 && total_b.seconds[i] == 0) continue;
    add(
        "  " + std::string(Name(static_cast<Bucket>(i))), [i](const RunSummary& run) { return ShareText(run.Total(), i); },
        SignedDuration(total_b.seconds[i] - total_a.seconds[i]));
  }
  return rows;
}

std::string RankTable(const RunSummary& summary) {
  std::vector<Row> rows{{"rank", "time"}};
  std::vector<size_t> shown;
  const Rank total = summary.Total();
  for (size_t i = 0; i < kBuckets; ++i) {
    if (total.seconds[i] == 0) continue;
    shown.push_back(i);
    rows[0].emplace_back(Name(static_cast<Bucket>(i)));
  }
  rows[0].insert(rows[0].end(), {"restarts", "redone steps"});
  for (const Rank& rank : summary.ranks) {
    const double all = rank.AllSeconds();
    Row& row = rows.emplace_back(Row{OneLine(rank.role) + " rep_" + std::to_string(rank.replica), DurationText(all)});
    for (const size_t i : shown) row.push_back(PercentText(all > 0 ? rank.seconds[i] / all : 0));
    row.push_back(std::to_string(rank.restarts));
    row.push_back(std::to_string(rank.redone_steps));
  }
  return Aligned(rows);
}

// Each with what to look at, as far as the file tells.
std::string DeathsText(const Json& deaths) {
  std::string text;
  for (const Json& death : deaths) {
    const auto member = [&](const char* name) {
      const auto found = death.is_object() ? death.find(name) : death.end();
      return found != death.end() && found->is_string() ? OneLine(found->get<std::string>()) : std::string();
    };
    if (const std::string what = member("text"); !what.empty()) text += what + '\n';
    if (const std::string where = member("look_at"); !where.empty()) text += "  " + where + '\n';
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
  const auto ratio = summary.Ratio();
  if (!ratio) return {};
  const Rank total = summary.Total();
  std::string first = "goodput " + PercentText(*ratio) + ", " + CountText(summary.ranks.size(), "rank", "ranks") + ", " +
                      CountText(total.restarts, "restart", "restarts") + ", " + CountText(total.redone_steps, "step", "steps") +
                      " redone";
  if (const auto repair = summary.MeanRepairSeconds()) first += ", mean time to repair " + DurationText(*repair);
  std::string second = "time of all ranks " + DurationText(total.AllSeconds());
  std::vector<size_t> buckets;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (total.seconds[i] > 0) buckets.push_back(i);
  }
  std::ranges::stable_sort(buckets, [&](size_t a, size_t b) { return total.seconds[a] > total.seconds[b]; });
  const char* separator = ": ";
  for (const size_t i : buckets) {
    second += separator + std::string(Name(static_cast<Bucket>(i))) + " " + DurationText(total.seconds[i]) + " (" +
              PercentText(total.seconds[i] / total.AllSeconds()) + ")";
    separator = ", ";
  }
  return {std::move(first), std::move(second)};
}

std::string SummaryTable(const std::string& name, const RunSummary& summary) {
  std::string text = Aligned(RowsOf({{name, &summary}}));
  if (!summary.ranks.empty()) text += "\n" + RankTable(summary);
  if (const std::string deaths = DeathsText(summary.deaths); !deaths.empty()) text += "\n" + deaths;
  return text;
}

std::string CompareTable(const std::string& name_a, const RunSummary& a, const std::string& name_b, const RunSummary& b) {
  return Aligned(RowsOf({{name_a, &a}, {name_b, &b}}));
}

}  // namespace persia::agent
