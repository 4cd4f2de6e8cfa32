#include "top/frame.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

namespace persia::agent {
namespace {

constexpr std::array<const char*, 6> kSortNames{"state", "rank", "throughput", "memory", "CPU", "restarts"};

constexpr std::array<const char*, 10> kHelp{
    "q           end",
    "Up, Down    select a line; PageUp, PageDown, Home, End",
    "Enter       show only the job of the selected line; Enter again: all jobs",
    "s           sort the ranks by the next column",
    "r           reverse the order",
    "/           show only jobs and ranks with a text; Enter keeps it, Esc removes it",
    "p           pause, and go on",
    "?           this help",
    "",
    "CPU is the average since the process started, until a second value is known.",
};

// A column of the ranks; text to the left, numbers to the right.
struct Column {
  const char* title;
  size_t width;
  bool is_number;
};
constexpr std::array<Column, 7> kColumns{{{"STATE", 7, false},
                                          {"SINCE", 6, true},
                                          {"RATE/S", 7, true},
                                          {"MEMORY", 8, true},
                                          {"CPU", 6, true},
                                          {"RESTARTS", 8, true},
                                          {"LAST EXIT", 9, false}}};
constexpr size_t kRateColumn = 2;

struct Row {
  Row(std::string text, LineStyle style, std::string name) : line{std::move(text), style}, target(std::move(name)) {}
  FrameLine line;
  std::string target;
};

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

bool Contains(const std::string& text, const std::string& lower) { return Lower(text).find(lower) != std::string::npos; }

std::string Padded(std::string text, size_t width, bool right) {
  const size_t columns = ColumnsOf(text);
  if (columns >= width) return text;
  return right ? std::string(width - columns, ' ') + text : text + std::string(width - columns, ' ');
}

// The worst first, and those that ended last.
enum class JobOrder : uint8_t { kFailed, kHung, kUnknown, kDegraded, kTroubled, kRunning, kWaiting, kFinished, kEnded };

JobOrder OrderOf(const AgentView& agent) {
  if (agent.ended) return JobOrder::kEnded;
  if (!agent.problem.empty() || agent.status == nullptr) return JobOrder::kUnknown;
  switch (agent.status->state) {
    case ShownJobState::kFailed:
      return JobOrder::kFailed;
    case ShownJobState::kHung:
      return JobOrder::kHung;
    case ShownJobState::kDegraded:
      return JobOrder::kDegraded;
    case ShownJobState::kRunning:
      return agent.status->reasons.empty() && !agent.status->stands_still ? JobOrder::kRunning : JobOrder::kTroubled;
    case ShownJobState::kWaiting:
      return JobOrder::kWaiting;
    default:
      return JobOrder::kFinished;
  }
}

LineStyle StyleOf(const AgentView& agent) {
  const JobOrder order = OrderOf(agent);
  if (order < JobOrder::kDegraded) return LineStyle::kBad;
  if (order < JobOrder::kRunning) return LineStyle::kWarning;
  return order == JobOrder::kRunning ? LineStyle::kGood : LineStyle::kDim;
}

LineStyle StyleOf(RankState state) {
  if (state == RankState::kDied || state == RankState::kHung) return LineStyle::kBad;
  if (state == RankState::kSlow) return LineStyle::kWarning;
  return state == RankState::kExited ? LineStyle::kDim : LineStyle::kPlain;
}

std::string ShownStateOf(const AgentView& agent) {
  if (agent.ended) return "ENDED";
  if (!agent.problem.empty()) return "NO ANSWER";
  return agent.status == nullptr ? "ASKED" : Upper(ToString(agent.status->state));
}

// "dlrm (http://10.0.0.7:19091/)"
std::string TitleOf(const AgentView& agent) {
  if (agent.status == nullptr || agent.status->job.empty()) return agent.name;
  const std::string& job = agent.status->job;
  const std::string place = agent.url.empty() ? agent.name : agent.url + "/";
  return job == place ? job : job + " (" + place + ")";
}

// "step 812 of 10.0k, 2h05m left"; empty: not known.
std::string ProgressOf(const JobStatus& status) {
  if (!status.step) return "";
  std::string text = "step " + ShownNumber(*status.step);
  if (status.planned_steps) text += " of " + ShownNumber(*status.planned_steps);
  constexpr double kLongest = 1e9;  // 30 years
  if (status.remaining_seconds && *status.remaining_seconds > 0 && *status.remaining_seconds < kLongest)
    text += ", " + ShownSpan(static_cast<int64_t>(*status.remaining_seconds * 1000)) + " left";
  return text;
}

// "dlrm (http://10.0.0.7:19091/)  DEGRADED 3m12s  trainer rep_2 died: SIGKILL"
std::string BannerOf(const AgentView& agent) {
  std::string text = TitleOf(agent) + "  ";
  if (!agent.problem.empty() || agent.status == nullptr)
    return text + ShownStateOf(agent) + (agent.problem.empty() ? "" : "  " + agent.problem);
  const JobStatus& status = *agent.status;
  text += status.title.empty() ? ShownStateOf(agent) : Upper(status.title);
  if (status.since_ms) text += ' ' + ShownSpan(status.now_ms - *status.since_ms);
  for (size_t i = 0; i < status.reasons.size(); ++i) text += (i == 0 ? "  " : "; ") + status.reasons[i];
  if (!status.counted.empty()) text += "  " + ShownNumber(status.per_second) + ' ' + status.counted + "/s";
  for (const std::string& more : {ProgressOf(status), status.text}) text += (more.empty() ? "" : "  ") + more;
  return text;
}

std::optional<double> CpuOf(const AgentView& agent, size_t rank) {
  return agent.cpus != nullptr && rank < agent.cpus->size() ? (*agent.cpus)[rank] : std::nullopt;
}

// What a larger one of comes first by.
double SortValueOf(const AgentView& agent, size_t index, SortKey key) {
  const Rank& rank = agent.status->ranks[index];
  switch (key) {
    case SortKey::kState:
      return -static_cast<double>(rank.state);
    case SortKey::kThroughput:
      return -rank.throughput.value_or(0);  // the slowest first
    case SortKey::kMemory:
      return rank.resident_bytes.value_or(-1);
    case SortKey::kCpu:
      return CpuOf(agent, index).value_or(-1);
    case SortKey::kRestarts:
      return static_cast<double>(rank.restarts);
    default:
      return 0;
  }
}

std::vector<size_t> SortedRanks(const AgentView& agent, const TopView& view) {
  std::vector<std::string> names;
  for (const Rank& rank : agent.status->ranks) names.push_back(rank.Name());
  std::vector<size_t> order(names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const double left = SortValueOf(agent, a, view.sort);
    const double right = SortValueOf(agent, b, view.sort);
    if (left != right) return (left > right) != view.reverse;
    const bool by_name = view.sort == SortKey::kName && view.reverse;
    return by_name ? NaturalLess(names[b], names[a]) : NaturalLess(names[a], names[b]);
  });
  return order;
}

// A table of the ranks. The name has the columns that the others leave.
class RankTable {
 public:
  RankTable(const FrameSize& size, bool has_rates) : size_(size), has_rates_(has_rates) {
    size_t others = 0;
    for (size_t i = 0; i < kColumns.size(); ++i)
      if (Has(i)) others += kColumns[i].width + 1;
    constexpr size_t kMinName = 12;
    constexpr size_t kMaxName = 40;
    name_width_ = std::clamp(size.width > others ? size.width - others : 0, kMinName, kMaxName);
  }

  [[nodiscard]] std::string Header() const {
    std::array<std::string, 7> titles;
    for (size_t i = 0; i < kColumns.size(); ++i) titles[i] = kColumns[i].title;
    return Line("RANK", titles);
  }

  [[nodiscard]] std::string RankLine(const AgentView& agent, size_t index) const {
    const Rank& rank = agent.status->ranks[index];
    const auto cpu = CpuOf(agent, index);
    return Line(
        "  " + rank.Name(),
        {ToString(rank.state), rank.since_ms ? ShownSpan(agent.status->now_ms - *rank.since_ms) : "-",
         rank.throughput ? ShownNumber(*rank.throughput) : "-", rank.resident_bytes ? ShownBytes(*rank.resident_bytes) : "-",
         cpu ? std::to_string(static_cast<int64_t>(std::min(*cpu, 999.0) * 100 + 0.5)) + '%' : "-",
         std::to_string(rank.restarts), rank.last_exit.empty() ? "-" : rank.last_exit});
  }

 private:
  [[nodiscard]] bool Has(size_t column) const { return column != kRateColumn || has_rates_; }
  [[nodiscard]] std::string Line(const std::string& name, const std::array<std::string, 7>& cells) const {
    std::string line = Padded(Shown(name, name_width_, size_.charset), name_width_, false);
    for (size_t i = 0; i < kColumns.size(); ++i) {
      if (!Has(i)) continue;
      line += ' ' + Padded(Shown(cells[i], kColumns[i].width, size_.charset), kColumns[i].width, kColumns[i].is_number);
    }
    return line;
  }

  const FrameSize& size_;
  const bool has_rates_;
  size_t name_width_ = 0;
};

std::string SummaryOf(const std::vector<AgentView>& agents, const TopView& view, const std::string& clock) {
  std::vector<std::pair<JobOrder, std::string>> states;
  std::vector<size_t> counts;
  size_t up = 0;
  size_t ranks = 0;
  for (const AgentView& agent : agents) {
    // Those of one state are counted together.
    const JobOrder own = OrderOf(agent);
    const std::pair state(own == JobOrder::kTroubled ? JobOrder::kRunning : own, Lower(ShownStateOf(agent)));
    const auto at = std::find(states.begin(), states.end(), state);
    if (at == states.end()) {
      states.push_back(state);
      counts.push_back(1);
    } else {
      ++counts[static_cast<size_t>(at - states.begin())];
    }
    if (agent.status == nullptr || agent.ended) continue;
    for (const Rank& rank : agent.status->ranks) {
      ranks += rank.is_rank ? 1 : 0;
      up += rank.is_rank && IsUp(rank.state) ? 1 : 0;
    }
  }
  std::string text = "top" + (clock.empty() ? "" : ' ' + clock) + "  " + std::to_string(agents.size()) +
                     (agents.size() == 1 ? " job" : " jobs");
  std::vector<size_t> order(states.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&states](size_t a, size_t b) { return states[a] < states[b]; });
  for (size_t i = 0; i < order.size(); ++i)
    text += (i == 0 ? ": " : ", ") + std::to_string(counts[order[i]]) + ' ' + states[order[i]].second;
  text += "  " + std::to_string(up) + "/" + std::to_string(ranks) + " ranks up  by " +
          kSortNames[static_cast<size_t>(view.sort)] + (view.reverse ? " reversed" : "");
  return view.paused ? text + "  PAUSED" : text;
}

std::vector<Row> RowsOf(const std::vector<AgentView>& agents, const TopView& view, const RankTable& table,
                        const FrameSize& size) {
  std::vector<const AgentView*> jobs;
  for (const AgentView& agent : agents)
    if (view.only.empty() || view.only == agent.name) jobs.push_back(&agent);
  std::sort(jobs.begin(), jobs.end(), [](const AgentView* a, const AgentView* b) {
    return OrderOf(*a) != OrderOf(*b) ? OrderOf(*a) < OrderOf(*b) : NaturalLess(TitleOf(*a), TitleOf(*b));
  });
  const std::string filter = Lower(view.filter);
  std::vector<Row> rows;
  for (const AgentView* agent : jobs) {
    const bool whole = Contains(TitleOf(*agent) + ' ' + ShownStateOf(*agent), filter);
    std::vector<Row> ranks;
    if (agent->status != nullptr) {
      const bool is_old = !agent->problem.empty();
      for (const size_t index : SortedRanks(*agent, view)) {
        const Rank& rank = agent->status->ranks[index];
        if (!whole && !Contains(rank.Name() + ' ' + ToString(rank.state) + ' ' + rank.last_exit, filter)) continue;
        ranks.emplace_back(table.RankLine(*agent, index), is_old ? LineStyle::kDim : StyleOf(rank.state), agent->name);
      }
    }
    if (!whole && ranks.empty()) continue;
    rows.emplace_back(Shown(BannerOf(*agent), size.width, size.charset), StyleOf(*agent), agent->name);
    std::move(ranks.begin(), ranks.end(), std::back_inserter(rows));
  }
  return rows;
}

std::string KeysLine(const TopView& view) {
  if (view.types_filter) return "filter: " + view.filter + '_';
  std::string text = "q end  s sort  r reverse  / filter  Enter job  p pause  ? help";
  if (!view.filter.empty()) text += "  filter: " + view.filter;
  return text;
}

}  // namespace

SortKey NextSortKey(SortKey key) { return static_cast<SortKey>((static_cast<size_t>(key) + 1) % kSortNames.size()); }

Frame BuildFrame(const std::vector<AgentView>& agents, const TopView& view, const FrameSize& size) {
  const auto line = [&size](const std::string& text, LineStyle style) {
    return FrameLine{Shown(text, size.width, size.charset), style};
  };
  const bool has_rates = std::any_of(agents.begin(), agents.end(), [](const AgentView& agent) {
    return agent.status != nullptr && std::any_of(agent.status->ranks.begin(), agent.status->ranks.end(),
                                                  [](const Rank& rank) { return rank.throughput.has_value(); });
  });
  const RankTable table(size, has_rates);
  Frame frame;
  frame.lines.push_back(line(SummaryOf(agents, view, size.clock), LineStyle::kTitle));
  if (view.help) {
    for (const char* text : kHelp) frame.lines.push_back(line(text, LineStyle::kPlain));
    if (size.height > 0 && frame.lines.size() > size.height) frame.lines.resize(size.height);
    return frame;
  }
  frame.lines.push_back(line(table.Header(), LineStyle::kKeys));
  std::vector<Row> rows = RowsOf(agents, view, table, size);
  size_t first = 0;
  size_t count = rows.size();
  const size_t selected = rows.empty() ? 0 : std::min(view.selected, rows.size() - 1);
  if (size.height > 0) {
    const size_t space = size.height > 3 ? size.height - 3 : 1;
    count = std::min(rows.size(), space);
    first = std::min(selected > space / 2 ? selected - space / 2 : 0, rows.size() - count);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    frame.rows.push_back(std::move(rows[i].target));
    if (i < first || i >= first + count) continue;
    rows[i].line.text = Shown(rows[i].line.text, size.width, size.charset);
    rows[i].line.selected = size.height > 0 && i == selected;
    frame.lines.push_back(std::move(rows[i].line));
  }
  if (agents.empty()) {
    frame.lines.push_back(line("no job of this user runs on this machine", LineStyle::kPlain));
    frame.lines.push_back(
        line("persia-metrics-agent exec -- COMMAND starts one; top HOST:PORT shows those of an agent", LineStyle::kDim));
  } else if (rows.empty()) {
    frame.lines.push_back(line("nothing matches the filter", LineStyle::kDim));
  }
  if (size.height == 0) return frame;
  if (frame.lines.size() >= size.height) frame.lines.resize(size.height - 1);
  while (frame.lines.size() + 1 < size.height) frame.lines.push_back({""});
  frame.lines.push_back(line(KeysLine(view), LineStyle::kKeys));
  return frame;
}

}  // namespace persia::agent
