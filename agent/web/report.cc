#include "web/report.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "web/api.h"
#include "web/assets.h"

namespace persia::agent {
namespace {

// Nothing is loaded from anywhere: the scripts are the file's own.
constexpr std::string_view kPolicy =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline' data:; style-src "
    "'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">";

constexpr int64_t kSteps = 240;
constexpr int64_t kStepsOfBands = 120;
// With more label sets, a chart has bands, as on the page.
constexpr size_t kMostLines = 12;
constexpr size_t kMostDistributions = 4;
constexpr int64_t kShortestStepMs = 100;  // which the API takes

std::string_view ContentOf(std::string_view name) {
  const auto assets = Assets();
  const auto found = std::ranges::find(assets, name, &Asset::name);
  assert(found != assets.end());
  return found->content;
}

void ReplaceAll(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

std::string Script(std::string_view attributes, std::string_view content) {
  return "<script" + std::string(attributes) + ">" + std::string(content) + "</script>\n";
}

// A module is found by its name: a `data:` URL has no folder to which a path could be relative.
std::string ImportMap() {
  Json imports = Json::object();
  for (const Asset& asset : Assets()) {
    if (!asset.name.ends_with(".js")) continue;
    std::string module(asset.content);
    ReplaceAll(module, " from './", " from 'persia/");
    imports["persia/" + std::string(asset.name)] = "data:text/javascript;base64," + Base64Encode(module);
  }
  return Script(" type=\"importmap\"", WriteJson({{"imports", std::move(imports)}}));
}

void AppendMember(std::string& object, std::string_view name, std::string_view json) {
  object += (object.size() > 1 ? ",\n" : "") + WriteJson(name) + ": ";
  object += json;
}

// The parameters for the whole history in steps, of which the last one ends now.
std::string WholeSpan(const History::Stats& history, int64_t now_ms, int64_t most_steps) {
  const int64_t oldest_ms = history.oldest_unix_ms.value_or(now_ms);
  const int64_t step_ms = std::max<int64_t>({history.step.count(), (now_ms - oldest_ms) / most_steps + 1, kShortestStepMs});
  const int64_t steps = (now_ms - oldest_ms) / step_ms + 1;
  const auto number = [](int64_t value) { return std::to_string(value); };
  return "&start=" + number(now_ms - steps * step_ms) + "&end=" + number(now_ms) + "&step=" + number(step_ms / 1000) + "." +
         number(step_ms % 1000 + 1000).substr(1);
}

// Whether a chart of all families of this name has bands.
bool HasBands(std::span<const FamilyLayout> families) {
  size_t series = 0;
  for (const FamilyLayout& family : families) series += family.series.size();
  const MetricType type = families.front().type;
  return series > (type == MetricType::kHistogram || type == MetricType::kSummary ? kMostDistributions : kMostLines);
}

// The responses of the API, by what the page asks for.
std::string Answers(const AgentStatus& status, const std::vector<History::Entry>& entries, const Snapshot* newest,
                    const EventLog& events, std::chrono::system_clock::time_point now, size_t max_bytes) {
  std::string ranges = "{";
  std::string series = "{";
  const int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  const std::string lines = WholeSpan(status.history, now_ms, kSteps);
  const std::string bands = WholeSpan(status.history, now_ms, kStepsOfBands) + "&bands=true&q=0.5,0.99";
  std::string_view before;
  size_t left_out = 0;
  const Layout none;
  for (const FamilyLayout& family : (newest == nullptr ? none : *newest->layout).families) {
    if (std::exchange(before, family.name) == family.name) continue;
    const std::string name = "name=" + PercentEncode(family.name);
    AppendMember(series, family.name, AnswerSeries(name + "&limit=50", newest).body);
    const bool has_bands = HasBands(FamiliesNamed(*newest->layout, family.name));
    const std::string range = AnswerRange(name + (has_bands ? bands : lines), entries, newest).body;
    if (ranges.size() + series.size() + range.size() <= max_bytes)
      AppendMember(ranges, family.name, range);
    else
      ++left_out;
  }
  std::string all = "{";
  AppendMember(all, "status", AnswerStatus(status, newest, now).body);
  AppendMember(all, "metadata", AnswerMetadata(newest).body);
  AppendMember(all, "events", AnswerEvents("limit=1000", events).body);
  AppendMember(all, "left_out", std::to_string(left_out));
  AppendMember(all, "query_range", ranges + "}");
  AppendMember(all, "series", series + "}");
  all += "}";
  ReplaceAll(all, "<", "\\u003c");  // no text ends the script element
  return all;
}

}  // namespace

std::string MakeReport(const AgentStatus& status, const std::vector<History::Entry>& entries, const Snapshot* newest,
                       const EventLog& events, std::chrono::system_clock::time_point now, size_t max_bytes) {
  std::string html(ContentOf("index.html"));
  const auto put = [&html](std::string_view element, std::string_view by) {
    assert(html.find(element) != std::string::npos);
    ReplaceAll(html, element, by);
  };
  put("<meta charset=\"utf-8\">", "<meta charset=\"utf-8\">\n" + std::string(kPolicy));
  put("<link rel=\"stylesheet\" href=\"assets/page.css\">", "<style>" + std::string(ContentOf("page.css")) + "</style>");
  put("<script src=\"assets/theme.js\"></script>", Script("", ContentOf("theme.js")));
  put("<script src=\"assets/dygraph.min.js\" defer></script>", Script("", ContentOf("dygraph.min.js")));
  put("<script src=\"assets/page.js\" type=\"module\"></script>",
      ImportMap() +
          Script(" type=\"application/json\" id=\"report\"", Answers(status, entries, newest, events, now, max_bytes)) +
          Script(" type=\"module\"", "import 'persia/page.js';"));
  return html;
}

}  // namespace persia::agent
